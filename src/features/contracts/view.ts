/** The queries and the mapper for every response that shows a Contract, and the status rule as SQL, for filters. */
import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { workerStake } from "@working-contracts/protocol/ledger";
import { OUTCOMES, unpackOutcomes } from "@working-contracts/protocol/outcomes";
import { effectiveOutcomes, STATUSES, type Status, statusOf } from "@working-contracts/protocol/status";
import { eachParameter, type Parameters } from "@working-contracts/protocol/terms";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Phase } from "@working-contracts/protocol/types";
import { and, eq, getTableColumns, ne, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import {
  type IndexReader,
  type Loose,
  requireIndex,
  statusFacts,
  vote,
  workingContract as w,
  wholeBlock,
} from "../../db/onchain.js";
import { delivery, terms } from "../../db/schema.js";
import { forEachCall, prepareShared, selected } from "../../db/statements.js";
import { type AppError, notFound } from "../../errors.js";
import { AddressViewSchema } from "../../http/schemas.js";

/** A decimal of the stablecoin. */
export const AmountViewSchema = z.string().openapi({ example: "50.0" });
export const TimeViewSchema = z.string().openapi({ format: "date-time" });

/** A Contract as the API shows it (specification, "Contract"). */
export const ContractSchema = z
  .object({
    id: z.string(),
    status: z.enum(STATUSES),
    createdAt: TimeViewSchema,
    initiator: z.enum(["client", "worker"]),
    client: AddressViewSchema.nullable(),
    worker: AddressViewSchema.nullable(),
    title: z.string(),
    taskDescription: z.string(),
    acceptanceCriteria: z.array(z.string()),
    criteriaMet: z.array(z.enum(OUTCOMES)).nullable(),
    supplementaryMaterials: z.string().nullable().openapi({ description: "Compact JWE" }),
    delivery: z.string().nullable().openapi({ description: "Compact JWE" }),
    contractType: z.literal("fixed"),
    awardMethod: z.enum(["direct_award", "open_tender"]),
    budgetOrPrice: AmountViewSchema,
    matchDeadline: TimeViewSchema,
    withdrawalDeadline: TimeViewSchema,
    deliveryDeadline: TimeViewSchema,
    reviewDeadline: TimeViewSchema,
    verificationMode: z.literal("privacy-preserving"),
    backupAgents: z.array(AddressViewSchema),
    escrowedFunds: AmountViewSchema.nullable(),
    workerStake: AmountViewSchema.nullable(),
    disputeBond: AmountViewSchema.nullable(),
  })
  .openapi("Contract");

export type ContractView = z.infer<typeof ContractSchema>;

/** In the order of settled bonds; bounded by 4,095 ballots per contract. */
const backupAgents = sql<Address[]>`array(
  select ${vote.backupAgent} from ${vote} where ${vote.contractId} = ${w.id} order by ${vote.position}
)`;

/** Opened contracts whose terms this service holds. Add order and limit, and pass the rows to {@link requireIndex}. */
export function selectContracts<Extra extends Record<string, SQL> = Record<never, never>>(
  db: Executor,
  where?: SQL,
  extra = {} as Extra,
) {
  return db
    .select({
      chain: getTableColumns(w),
      terms: { title: terms.title },
      indexBlock: wholeBlock,
      ...extra,
    })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .where(and(ne(w.phase, "none"), where))
    .$dynamic();
}

export type ContractRow = Awaited<ReturnType<typeof selectContracts>>[number];

/** The row of one contract; throws 404 `not_found` if it was never opened, or if its terms are not stored here. */
export async function loadContract(reader: IndexReader, id: Address): Promise<ContractRow> {
  const rows = await selectContracts(reader.db, eq(w.id, id)).limit(1);
  await requireIndex(reader, rows);
  const [row] = rows;
  if (row === undefined) throw noContract(id);
  return row;
}

/** SQL: bytes of a Contract's texts as JSON, or a little more. Postgres knows lengths without reading the texts. */
const length = sql<number>`octet_length(${terms.document}) + coalesce(octet_length(${terms.supplementaryMaterials}), 0)
  + coalesce(octet_length(${delivery.encrypted}), 0) + 45 * ${w.sealedVotes}`;

/** What {@link toContract} reads of the chain. */
const SHOWN = {
  id: w.id,
  workerInitiated: w.workerInitiated,
  computedCriteria: w.computedCriteria,
  price: w.price,
  criteriaCount: w.criteriaCount,
  matchDeadline: w.matchDeadline,
  withdrawalDeadline: w.withdrawalDeadline,
  deliveryDeadline: w.deliveryDeadline,
  reviewDeadline: w.reviewDeadline,
  workerStakeRatio: w.workerStakeRatio,
  phase: w.phase,
  client: w.client,
  worker: w.worker,
  outcomes: w.outcomes,
  createdAt: w.createdAt,
  matchedAt: w.matchedAt,
  deliveredAt: w.deliveredAt,
  endedAt: w.endedAt,
  disputeBond: w.disputeBond,
  settled: w.settled,
} as const;
const SHOWN_TERMS = {
  title: terms.title,
  taskDescription: terms.taskDescription,
  acceptanceCriteria: terms.acceptanceCriteria,
  supplementaryMaterials: terms.supplementaryMaterials,
  awardMethod: terms.awardMethod,
} as const;

type ShownChain = Loose<Pick<ContractRow["chain"], keyof typeof SHOWN>>;

export type ShownRow = ShownChain &
  Pick<typeof terms.$inferSelect, keyof typeof SHOWN_TERMS> &
  Pick<ContractRow, "indexBlock"> & { delivery: string | null; backupAgents: Address[] };

/** SQL of {@link selectContracts} with only the shown columns. Add order and limit, and call {@link requireIndex}. */
export function shownContracts(where?: SQL): SQL {
  const columns = {
    ...SHOWN,
    ...SHOWN_TERMS,
    delivery: delivery.encrypted,
    backupAgents,
    indexBlock: wholeBlock,
    length,
  };
  return sql`
    select ${selected(columns)}
    from ${w}
    join ${terms} on ${terms.id} = ${w.id}
    left join ${delivery} on ${delivery.contractId} = ${w.id}
      and ${delivery.deliveryHash} = ${w.deliveryHash} and ${delivery.worker} = ${w.worker}
    where ${and(ne(w.phase, "none"), where)}`;
}

const contractById = prepareShared<ShownRow>(
  "contracts_shown",
  forEachCall({ id: "text" }, shownContracts(sql`${w.id} = call.id`)),
);

export function noContract(id: Address): AppError {
  return notFound(`Contract not found: ${id}`);
}

/** One contract as the API shows it now, with `changes`; throws 404 `not_found`. */
export async function viewContract(
  deps: IndexReader,
  id: Address,
  changes: Partial<ShownRow> = {},
): Promise<ContractView> {
  const [row] = await contractById(deps.db, { id });
  await requireIndex(deps, row && [row]);
  if (row === undefined) throw noContract(id);
  return toContract({ ...row, ...changes }, deps.clock.now());
}

/** The facts that determine status, outcomes and ending. */
export function factsOf({ chain }: { chain: ShownChain }) {
  return { ...statusFacts(chain), endedAt: chain.endedAt === null ? null : Number(chain.endedAt) };
}

export function parametersOf({ chain }: Pick<ContractRow, "chain">): Parameters {
  return eachParameter((name) => Number(chain[name]));
}

/** The Contract of a row at `now` (seconds on the chain's clock). */
export function toContract(row: ShownRow, now: number): ContractView {
  const facts = factsOf({ chain: row });
  const matched = row.matchedAt !== null;
  const stake = formatDecimal(workerStake(facts.price, row));
  const price = formatDecimal(facts.price);
  return {
    id: row.id,
    status: statusOf(facts, now),
    createdAt: isoTime(Number(row.createdAt)),
    initiator: row.workerInitiated ? "worker" : "client",
    client: row.client,
    worker: row.worker,
    title: row.title,
    taskDescription: row.taskDescription,
    acceptanceCriteria: row.acceptanceCriteria,
    criteriaMet: unpackOutcomes(effectiveOutcomes(facts, now), row.criteriaCount),
    supplementaryMaterials: row.supplementaryMaterials,
    delivery: row.deliveredAt === null ? null : row.delivery,
    contractType: "fixed",
    awardMethod: row.awardMethod,
    budgetOrPrice: price,
    matchDeadline: isoTime(Number(row.matchDeadline)),
    withdrawalDeadline: isoTime(Number(row.withdrawalDeadline)),
    deliveryDeadline: isoTime(Number(row.deliveryDeadline)),
    reviewDeadline: isoTime(Number(row.reviewDeadline)),
    verificationMode: "privacy-preserving",
    backupAgents: row.backupAgents,
    escrowedFunds: !row.workerInitiated || matched ? price : null,
    workerStake: row.workerInitiated || matched ? stake : null,
    disputeBond: row.disputeBond === null ? null : formatDecimal(BigInt(row.disputeBond)),
  };
}

/** Status of a `working_contract` row at `now` (seconds, or a placeholder), as text. */
export function statusSql(now: number | Placeholder): SQL<Status> {
  const isBefore = sql`not ${w.settled} and ${now}::numeric <`;
  return sql<Status>`case ${w.phase}
    when 'created' then case when ${isBefore} ${w.matchDeadline} then 'created' else 'cancelled-unmatched' end
    when 'matched' then case when ${isBefore} ${w.deliveryDeadline} then 'matched' else 'cancelled-absent' end
    when 'delivered' then case when ${isBefore} ${w.reviewDeadline} then 'under-review' else ${resolvedSql} end
    when 'approved' then ${resolvedSql}
    when 'tallied' then ${resolvedSql}
    when 'disputed' then 'disputed'
    when 'declined' then 'cancelled-unmatched'
    when 'cancelled' then 'cancelled-by-initiator'
    when 'withdrawn' then 'cancelled-withdrawn'
  end`;
}

const RESOLVED: Phase[] = ["delivered", "approved", "tallied"];

/** The phases that a status can have, and whether its contracts have been paid out; null if they can be either. */
const ROWS_OF: Record<Status, { phases: Phase[]; settled: boolean | null }> = {
  created: { phases: ["created"], settled: false },
  matched: { phases: ["matched"], settled: false },
  "under-review": { phases: ["delivered"], settled: false },
  disputed: { phases: ["disputed"], settled: false },
  resolved: { phases: RESOLVED, settled: false },
  "settled-all-met": { phases: RESOLVED, settled: true },
  "settled-none-met": { phases: RESOLVED, settled: true },
  "settled-partial": { phases: RESOLVED, settled: true },
  "cancelled-unmatched": { phases: ["created", "declined"], settled: null },
  "cancelled-by-initiator": { phases: ["cancelled"], settled: null },
  "cancelled-withdrawn": { phases: ["withdrawn"], settled: null },
  "cancelled-absent": { phases: ["matched"], settled: null },
};

/** The phases that a status can have: an indexable prefilter for a status filter. */
export function phasesOf(statuses: readonly Status[]): Phase[] {
  return [...new Set(statuses.flatMap((status) => ROWS_OF[status].phases))];
}

/** Contracts of one phase that are paid out, or are not: contiguous rows in the lists' indexes. */
interface Partition {
  phase: Phase;
  settled: boolean;
}

export function partitionsOf(statuses: readonly Status[]): Partition[] {
  return [false, true].flatMap((settled) =>
    phasesOf(statuses.filter((status) => ROWS_OF[status].settled !== !settled)).map((phase) => ({
      phase,
      settled,
    })),
  );
}

/** Packed outcomes hold two bits a criterion: 01 met, 10 not met, 11 unclear. */
const bits = (packed: SQL): SQL => sql`bit_count((${packed})::bit(24))`;
const low = sql`(${w.outcomes} & 5592405)`;
const high = sql`((${w.outcomes} >> 1) & 5592405)`;
const met = bits(sql`${low} & ~${high}`);
const unclear = bits(sql`${low} & ${high}`);
/** A criterion without an outcome counts as unclear, as in the escrow. */
const undecided = sql`(${w.criteriaCount} - ${bits(sql`${low} | ${high}`)})`;
const acceptedByTimeOut = sql`${w.phase} = 'delivered' and not ${w.computedCriteria}`;
/** Unclear criteria split the price after a vote, and pay as met if the Client accepted. */
const unclearWeight = sql`(case ${w.phase} when 'tallied' then 1 else 2 end)`;
const released = sql`div(${w.price} * (2 * ${met} + ${unclearWeight} * (${unclear} + ${undecided})), 2 * ${w.criteriaCount})`;

const resolvedSql = sql`case
  when not ${w.settled} then 'resolved'
  when (${acceptedByTimeOut}) or ${released} = ${w.price} then 'settled-all-met'
  when ${released} = 0 then 'settled-none-met'
  else 'settled-partial'
end`;
