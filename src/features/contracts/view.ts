/** The query and the mapper for every response that shows a Contract. */

import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { workerStake } from "@working-contracts/protocol/ledger";
import { OUTCOMES, unpackOutcomes } from "@working-contracts/protocol/outcomes";
import { eachParameter, type Parameters } from "@working-contracts/protocol/parameters";
import { effectiveOutcomes, STATUSES, type StatusFacts, statusOf } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Phase } from "@working-contracts/protocol/types";
import { and, eq, getTableColumns, ne, type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { isIndexWhole, requireIndex } from "../../db/index-position.js";
import { vote, workingContract } from "../../db/onchain.js";
import { delivery, terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
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
  select ${vote.backupAgent} from ${vote} where ${vote.contractId} = ${workingContract.id} order by ${vote.position}
)`;

/**
 * Rows of contracts that were opened, and whose terms this service holds. Add order and limit, and pass the rows to
 * {@link requireIndex}.
 */
export function selectContracts(db: Executor, where?: SQL, { isReorganized = sql<boolean>`false` } = {}) {
  return db
    .select({
      chain: getTableColumns(workingContract),
      terms: {
        caller: terms.caller,
        title: terms.title,
        taskDescription: terms.taskDescription,
        acceptanceCriteria: terms.acceptanceCriteria,
        supplementaryMaterials: terms.supplementaryMaterials,
        application: terms.application,
        awardMethod: terms.awardMethod,
      },
      delivery: delivery.encrypted,
      backupAgents,
      indexIsWhole: isIndexWhole,
      isReorganized,
    })
    .from(workingContract)
    .innerJoin(terms, eq(terms.id, workingContract.id))
    .leftJoin(
      delivery,
      and(
        eq(delivery.contractId, workingContract.id),
        eq(delivery.deliveryHash, workingContract.deliveryHash),
      ),
    )
    .where(and(ne(workingContract.phase, "none"), where))
    .$dynamic();
}

export type ContractRow = Awaited<ReturnType<typeof selectContracts>>[number];

/** The row of one contract; throws 404 `not_found` if it was never opened, or if its terms are not stored here. */
export async function loadContract(db: Executor, id: Address): Promise<ContractRow> {
  const rows = await selectContracts(db, eq(workingContract.id, id)).limit(1);
  await requireIndex(db, rows);
  const [row] = rows;
  if (row === undefined) throw noContract(id);
  return row;
}

export function noContract(id: Address): AppError {
  return new AppError("not_found", { message: `Contract not found: ${id}` });
}

/** One contract as the API shows it now; throws 404 `not_found`. */
export async function viewContract(deps: Pick<Deps, "db" | "clock">, id: Address): Promise<ContractView> {
  return toContract(await loadContract(deps.db, id), deps.clock.now());
}

/** The facts that determine status, outcomes and ending. */
export function factsOf({ chain }: Pick<ContractRow, "chain">): StatusFacts & { endedAt: number | null } {
  return {
    phase: chain.phase as Exclude<Phase, "none">,
    settled: chain.settled,
    outcomes: chain.outcomes,
    price: chain.price,
    criteriaCount: chain.criteriaCount,
    computedCriteria: chain.computedCriteria,
    matchDeadline: Number(chain.matchDeadline),
    deliveryDeadline: Number(chain.deliveryDeadline),
    reviewDeadline: Number(chain.reviewDeadline),
    endedAt: chain.endedAt === null ? null : Number(chain.endedAt),
  };
}

/** The parameter snapshot of a contract. */
export function parametersOf({ chain }: Pick<ContractRow, "chain">): Parameters {
  return eachParameter((name) => Number(chain[name]));
}

/** The Contract of a row at `now` (seconds on the chain's clock). */
export function toContract(row: ContractRow, now: number): ContractView {
  const { chain, terms: text } = row;
  const facts = factsOf(row);
  const matched = chain.matchedAt !== null;
  const stake = formatDecimal(workerStake(chain.price, parametersOf(row)));
  const price = formatDecimal(chain.price);
  return {
    id: chain.id,
    status: statusOf(facts, now),
    createdAt: isoTime(chain.createdAt ?? 0n),
    initiator: chain.workerInitiated ? "worker" : "client",
    client: chain.client,
    worker: chain.worker,
    title: text.title,
    taskDescription: text.taskDescription,
    acceptanceCriteria: text.acceptanceCriteria,
    criteriaMet: unpackOutcomes(effectiveOutcomes(facts, now), chain.criteriaCount),
    supplementaryMaterials: text.supplementaryMaterials,
    delivery: chain.deliveredAt === null ? null : row.delivery,
    contractType: "fixed",
    awardMethod: text.awardMethod as ContractView["awardMethod"],
    budgetOrPrice: price,
    matchDeadline: isoTime(chain.matchDeadline),
    withdrawalDeadline: isoTime(chain.withdrawalDeadline),
    deliveryDeadline: isoTime(chain.deliveryDeadline),
    reviewDeadline: isoTime(chain.reviewDeadline),
    verificationMode: "privacy-preserving",
    backupAgents: row.backupAgents,
    escrowedFunds: !chain.workerInitiated || matched ? price : null,
    workerStake: chain.workerInitiated || matched ? stake : null,
    disputeBond: chain.disputeBond === null ? null : formatDecimal(chain.disputeBond),
  };
}
