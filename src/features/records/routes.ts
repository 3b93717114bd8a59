/** The results of an agent's contracts, its payments by month for its page, and its workload (specification, "Workload"). */
import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { STATUS_GROUPS, type Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, gte, inArray, isNotNull, type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import {
  deferredPayout,
  draw,
  type IndexReader,
  requireIndex,
  stake,
  vote,
  workingContract as w,
} from "../../db/onchain.js";
import { apiKey, complaint, profile, terms } from "../../db/schema.js";
import { prepare } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { notFound } from "../../errors.js";
import { body, data, endpoints } from "../../http/endpoint.js";
import { inReadQueue } from "../../http/read-queue.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { AmountViewSchema, phasesOf, statusSql } from "../contracts/view.js";
import { criterion, shownVotes, tallied, toVote, type VoteRow } from "../votes/view.js";

/** An agent's work in one role. A dispute is won if this role got the whole price, and lost if it got none. */
const RoleRecordSchema = z.object({
  active: z.number(),
  completed: z.number().openapi({ description: "Delivered and settled" }),
  withdrawn: z.number(),
  absent: z.number(),
  disputesWon: z.number().openapi({ description: "This role got the whole price" }),
  disputesLost: z.number().openapi({ description: "The other role got the whole price" }),
  disputesSplit: z.number(),
  settledValue: AmountViewSchema.openapi({ description: "Sum of the prices of completed contracts" }),
  received: AmountViewSchema.openapi({ description: "Paid to this role by settlements, deposits included" }),
});

const RecordSchema = z
  .object({
    agentId: AddressViewSchema,
    asWorker: RoleRecordSchema,
    asClient: RoleRecordSchema,
    asBackupAgent: z.object({
      ballots: z.number().openapi({ description: "In tallied disputes" }),
      unopened: z.number(),
      tokens: z.number(),
    }),
    complaintsAgainst: z.object({ pending: z.number(), upheld: z.number(), dismissed: z.number() }),
  })
  .openapi("Record");

export type RoleRecord = z.infer<typeof RoleRecordSchema>;
export type RecordView = z.infer<typeof RecordSchema>;

/** The record of any address; zeros if it has done nothing. Contracts count once matched. */
export async function readRecord(deps: IndexReader, agent: Address): Promise<RecordView> {
  const { db, clock } = deps;
  const now = clock.now();
  const [asWorker, asClient, asBackupAgent, complaintsAgainst] = await Promise.all([
    readRole(db, "worker", { agent, now }),
    readRole(db, "client", { agent, now }),
    readBallots(db, agent),
    readComplaints(db, agent),
  ]);
  await requireIndex(deps);
  return { agentId: agent, asWorker, asClient, asBackupAgent, complaintsAgainst };
}

const SETTLED = STATUS_GROUPS.closed.filter((status) => status.startsWith("settled-"));
const OPEN_ENDED: readonly Status[] = STATUS_GROUPS.active;

/** With the statuses in which a role got the whole price, or nothing. */
const ROLES = {
  worker: { party: w.worker, payout: w.workerPayout, all: "settled-all-met", none: "settled-none-met" },
  client: { party: w.client, payout: w.clientPayout, all: "settled-none-met", none: "settled-all-met" },
} as const;

async function readRole(
  db: Executor,
  role: keyof typeof ROLES,
  { agent, now }: { agent: Address; now: number },
): Promise<RoleRecord> {
  const { party, payout, all, none } = ROLES[role];
  const statuses: Status[] = [...OPEN_ENDED, ...SETTLED, "cancelled-withdrawn", "cancelled-absent"];
  const status = statusSql(now);
  const rows = await db
    .select({
      status: sql<Status>`${status}`.as("status"),
      disputed: sql<boolean>`${tallied}`.as("disputed"),
      count: sql<number>`count(*)::int`,
      value: sql<string>`sum(${w.price})::text`,
      // What the token refused counts once it is claimed. It is one amount for all roles of its payee.
      received: sql<string>`sum(greatest(${payout} - coalesce(${deferredPayout.amount}, 0), 0))::text`,
    })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .leftJoin(deferredPayout, and(eq(deferredPayout.contractId, w.id), eq(deferredPayout.payee, agent)))
    .where(
      and(
        eq(party, agent),
        isNotNull(w.matchedAt),
        inArray(w.phase, phasesOf(statuses)),
        inArray(status, statuses),
      ),
    )
    .groupBy(sql`1`, sql`2`);

  const count = (wanted: (row: (typeof rows)[number]) => boolean) =>
    rows.reduce((total, row) => (wanted(row) ? total + row.count : total), 0);
  const completed = rows.filter((row) => SETTLED.includes(row.status as (typeof SETTLED)[number]));
  const disputes = completed.filter((row) => row.disputed);
  const sum = (list: typeof rows, field: "value" | "received") =>
    formatDecimal(list.reduce((total, row) => total + BigInt(row[field]), 0n));
  return {
    active: count((row) => OPEN_ENDED.includes(row.status)),
    completed: count((row) => completed.includes(row)),
    withdrawn: count((row) => row.status === "cancelled-withdrawn"),
    absent: count((row) => row.status === "cancelled-absent"),
    disputesWon: count((row) => disputes.includes(row) && row.status === all),
    disputesLost: count((row) => disputes.includes(row) && row.status === none),
    disputesSplit: count((row) => disputes.includes(row) && row.status === "settled-partial"),
    settledValue: sum(completed, "value"),
    received: sum(rows, "received"),
  };
}

async function readBallots(db: Executor, agent: Address): Promise<RecordView["asBackupAgent"]> {
  const [row] = await db
    .select({
      ballots: sql<number>`count(*)::int`,
      unopened: sql<number>`(count(*) filter (where ${vote.votes} is null))::int`,
      tokens: sql<number>`coalesce(sum(${vote.reward}), 0)::int`,
    })
    .from(vote)
    .innerJoin(w, eq(w.id, vote.contractId))
    .innerJoin(terms, eq(terms.id, w.id))
    .where(and(eq(vote.backupAgent, agent), tallied));
  return row ?? { ballots: 0, unopened: 0, tokens: 0 };
}

/** Complaints of one party are about the other. */
async function readComplaints(db: Executor, agent: Address): Promise<RecordView["complaintsAgainst"]> {
  const rows = await db
    .select({ status: complaint.status, count: sql<number>`count(*)::int` })
    .from(complaint)
    .innerJoin(w, eq(w.id, complaint.contractId))
    .where(
      sql`(${complaint.filedByRole} = 'client' and ${w.worker} = ${agent})
        or (${complaint.filedByRole} = 'worker' and ${w.client} = ${agent})`,
    )
    .groupBy(complaint.status);
  const of = (status: string) => rows.find((row) => row.status === status)?.count ?? 0;
  return { pending: of("pending"), upheld: of("upheld"), dismissed: of("dismissed") };
}

export interface MonthView {
  /** `2026-01`, in UTC. */
  month: string;
  contracts: number;
  received: string;
}

const MONTHS = 12;
/** The newest contracts of a worker that are looked at, so that no agent's page reads more. */
const CONTRACTS = 10_000;

/** Settlements to a worker by month, for a year, oldest first, stakes included; what the token refused counts once it is claimed. */
export async function readEarnings(
  { db, clock }: Pick<Deps, "db" | "clock">,
  worker: Address,
): Promise<MonthView[]> {
  const months = lastMonths(clock.now());
  const rows = await paidByMonth(db, { worker, since: Date.parse(`${months[0]}-01`) / 1000 });
  const paid = new Map(rows.map((row) => [row.month, row]));
  return months.map((month) => {
    const { contracts = 0, received = "0" } = paid.get(month) ?? {};
    return { month, contracts, received: formatDecimal(BigInt(received)) };
  });
}

function lastMonths(now: number): string[] {
  const date = new Date(now * 1000);
  const monthAt = (back: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back);
  return Array.from({ length: MONTHS }, (_, i) =>
    new Date(monthAt(MONTHS - 1 - i)).toISOString().slice(0, 7),
  );
}

/** One walk along the index of the worker's contracts, and a look at what each of them still owes it. */
export function paidByMonth(db: Executor, { worker, since }: { worker: Address; since: number }) {
  const newest = db
    .select({ id: w.id, settledAt: w.settledAt, payout: w.workerPayout, matchedAt: w.matchedAt })
    .from(w)
    // An escrow that was never paid has no such time, and would come first: anyone can deploy it, and name anyone.
    .where(and(eq(w.worker, worker), isNotNull(w.createdAt)))
    .orderBy(desc(w.createdAt), desc(w.id))
    .limit(CONTRACTS)
    .as("newest");
  return db
    .select({
      month: sql<string>`to_char(to_timestamp(${newest.settledAt}::bigint) at time zone 'UTC', 'YYYY-MM')`,
      contracts: sql<number>`count(*)::int`,
      received: sql<string>`sum(greatest(${newest.payout} - coalesce(${deferredPayout.amount}, 0), 0))::text`,
    })
    .from(newest)
    .innerJoin(terms, eq(terms.id, newest.id))
    .leftJoin(deferredPayout, and(eq(deferredPayout.contractId, newest.id), eq(deferredPayout.payee, worker)))
    .where(and(gte(newest.settledAt, BigInt(since)), isNotNull(newest.matchedAt)))
    .groupBy(sql`1`);
}

/** Maximum entries of each array; the newest are kept. */
const WORKLOAD_LIMIT = 1_000;

const WorkloadSchema = z
  .object({
    data: z.object({
      activeAsWorker: z.array(AddressViewSchema),
      completedAsWorker: z.array(AddressViewSchema),
      activeAsClient: z.array(AddressViewSchema),
      completedAsClient: z.array(AddressViewSchema),
      pendingBaVotes: z.array(z.object({ contractId: AddressViewSchema, criterionIndex: z.number() })),
      resolvedBaVotes: z.array(
        z.object({
          contractId: AddressViewSchema,
          criterionIndex: z.number(),
          vote: z.enum(OUTCOMES).nullable().openapi({ description: "Null if it was never opened" }),
          majorityOutcome: z.enum(OUTCOMES).nullable(),
        }),
      ),
    }),
    truncated: z
      .boolean()
      .openapi({ description: "True if an array had more than its newest 1,000 entries" }),
  })
  .openapi("Workload");

export type Workload = z.infer<typeof WorkloadSchema>;
export type WorkloadView = Workload["data"];

const ACTIVE: readonly Status[] = [...STATUS_GROUPS.open, ...STATUS_GROUPS.active];
const CLOSED: readonly Status[] = STATUS_GROUPS.closed;

/** The workload of `address` as `caller` may see it. Throws 404 `not_found` for an address that was never seen. */
export async function readWorkload(
  deps: IndexReader,
  { address, caller, limit = WORKLOAD_LIMIT }: { address: Address; caller: Address; limit?: number },
): Promise<Workload> {
  const { db, clock } = deps;
  const now = clock.now();
  // A direct award is no workload of the named Worker before it accepts.
  const asWorker = and(eq(w.worker, address), isNotNull(w.matchedAt));
  const asClient = eq(w.client, address);
  let longest = 0;
  // One more than is shown is read, to see whether there are more.
  const cut = async <T>(found: Promise<T[]>): Promise<T[]> => {
    const list = await found;
    longest = Math.max(longest, list.length);
    return list.slice(0, limit);
  };
  const contracts = (role: SQL | undefined, statuses: readonly Status[]) =>
    cut(findContracts(db, { role, statuses, now, limit }));
  const [
    activeAsWorker,
    completedAsWorker,
    activeAsClient,
    completedAsClient,
    pendingBaVotes,
    resolvedBaVotes,
  ] = await Promise.all([
    contracts(asWorker, ACTIVE),
    contracts(asWorker, CLOSED),
    contracts(asClient, ACTIVE),
    contracts(asClient, CLOSED),
    cut(findPendingVotes(db, address, limit)),
    cut(findResolvedVotes(db, { address, caller, limit })),
  ]);
  await requireIndex(deps);
  const asParty = { activeAsWorker, completedAsWorker, activeAsClient, completedAsClient };
  if (longest === 0 && !(await isKnown(db, address))) {
    throw notFound(`No activity for this address: ${address}`);
  }
  return { data: { ...asParty, pendingBaVotes, resolvedBaVotes }, truncated: longest > limit };
}

interface PartyQuery {
  role: SQL | undefined;
  statuses: readonly Status[];
  now: number;
  limit: number;
}

async function findContracts(db: Executor, { role, statuses, now, limit }: PartyQuery): Promise<Address[]> {
  const rows = await db
    .select({ id: w.id })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .where(
      and(
        role,
        isNotNull(w.createdAt),
        inArray(w.phase, phasesOf(statuses)),
        inArray(statusSql(now), [...statuses]),
      ),
    )
    .orderBy(desc(w.createdAt), desc(w.id))
    .limit(limit + 1);
  return rows.map(({ id }) => id);
}

/** A vote is pending from the draw to the tally; without a draw, from the ballot on. */
async function findPendingVotes(
  db: Executor,
  agent: Address,
  limit: number,
): Promise<WorkloadView["pendingBaVotes"]> {
  const drawnOrSealed = sql`(
    select ${draw.contractId} from ${draw} where ${draw.backupAgent} = ${agent}
    union select ${vote.contractId} from ${vote} where ${vote.backupAgent} = ${agent})`;
  return db
    .select({ contractId: w.id, criterionIndex: criterion })
    .from(w)
    .innerJoin(terms, eq(terms.id, w.id))
    .innerJoin(sql`generate_series(0, ${w.criteriaCount} - 1) as criterion`, sql`true`)
    .where(and(eq(w.phase, "disputed"), sql`${w.id} in ${drawnOrSealed}`))
    .orderBy(desc(w.disputedAt), desc(w.id), criterion)
    .limit(limit + 1);
}

const resolvedVotes = prepare<VoteRow>(
  "resolved_votes",
  sql`${shownVotes(and(eq(vote.backupAgent, sql.placeholder("address")), tallied))}
    order by ${desc(vote.sealedAt)}, ${desc(vote.contractId)}, ${criterion} limit ${sql.placeholder("limit")}`,
);

async function findResolvedVotes(
  db: Executor,
  { address, caller, limit }: { address: Address; caller: Address; limit: number },
): Promise<WorkloadView["resolvedBaVotes"]> {
  const rows = await resolvedVotes(db, { address, caller, limit: limit + 1 });
  return rows.map((row) => {
    const { contractId, criterionIndex, vote, majorityOutcome } = toVote(row);
    return { contractId, criterionIndex, vote, majorityOutcome };
  });
}

/** Whether an address without a workload has any other activity. Anyone can name it in an escrow that is not paid. */
async function isKnown(db: Executor, address: Address): Promise<boolean> {
  const { rows } = await db.execute<{ known: boolean }>(sql`select
    exists (select 1 from ${apiKey} where ${apiKey.address} = ${address})
    or exists (select 1 from ${profile} where ${profile.agent} = ${address})
    or exists (select 1 from ${stake} where ${stake.agent} = ${address})
    or exists (select 1 from ${draw} where ${draw.backupAgent} = ${address})
    or exists (select 1 from ${vote} where ${vote.backupAgent} = ${address})
    or exists (select 1 from ${w} where ${w.worker} = ${address} and ${w.createdAt} is not null)
    or exists (select 1 from ${w} where ${w.client} = ${address} and ${w.createdAt} is not null)
    as known`);
  return rows[0]?.known === true;
}

const { get } = endpoints("Agents");

export const recordEndpoints = [
  get("/v1/agents/{address}/workload", {
    operationId: "getWorkload",
    summary: "Read an agent's active and completed contracts and votes",
    longRead: true,
    params: AddressParamsSchema,
    returns: body("The workload, newest first in each array", WorkloadSchema),
    errors: ["not_found"],
    handle: (deps, { params: { address }, caller, c }) =>
      inReadQueue({ ip: c.get("ip"), caller }, () => readWorkload(deps, { address, caller })),
  }),
  get("/v1/agents/{address}/record", {
    operationId: "getRecord",
    summary: "Count the results of an agent's contracts and votes, and the complaints against it",
    longRead: true,
    params: AddressParamsSchema,
    returns: data("The record; zeros if the address has done nothing", RecordSchema),
    handle: (deps, { params: { address }, caller, c }) =>
      inReadQueue({ ip: c.get("ip"), caller }, () => readRecord(deps, address)),
  }),
];
