/** GET /v1/agents/{address}/record: counts the results of an agent's contracts; and its payments by month, for its page. */
import { z } from "@hono/zod-openapi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { STATUS_GROUPS, type Status } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, gte, inArray, isNotNull, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { deferredPayout, requireIndex, vote, workingContract as w } from "../../db/onchain.js";
import { complaint, terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { data, endpoints } from "../../http/endpoint.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { AmountViewSchema, phasesOf, statusSql } from "../contracts/view.js";
import { tallied } from "../votes/view.js";

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
export async function readRecord(
  { db, clock }: Pick<Deps, "db" | "clock">,
  agent: Address,
): Promise<RecordView> {
  const now = clock.now();
  const [asWorker, asClient, asBackupAgent, complaintsAgainst] = await Promise.all([
    readRole(db, { agent, role: w.worker, payout: w.workerPayout, allMine: "settled-all-met", now }),
    readRole(db, { agent, role: w.client, payout: w.clientPayout, allMine: "settled-none-met", now }),
    readBallots(db, agent),
    readComplaints(db, agent),
  ]);
  await requireIndex(db);
  return { agentId: agent, asWorker, asClient, asBackupAgent, complaintsAgainst };
}

const SETTLED = STATUS_GROUPS.closed.filter((status) => status.startsWith("settled-"));
const OPEN_ENDED: readonly Status[] = STATUS_GROUPS.active;

async function readRole(
  db: Executor,
  {
    agent,
    role,
    payout,
    allMine,
    now,
  }: {
    agent: Address;
    role: typeof w.worker | typeof w.client;
    payout: typeof w.workerPayout | typeof w.clientPayout;
    /** Status in which this role got the whole price. */
    allMine: Status;
    now: number;
  },
): Promise<RoleRecord> {
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
        eq(role, agent),
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
  const noneMine: Status = allMine === "settled-all-met" ? "settled-none-met" : "settled-all-met";
  const sum = (list: typeof rows, field: "value" | "received") =>
    formatDecimal(list.reduce((total, row) => total + BigInt(row[field]), 0n));
  return {
    active: count((row) => OPEN_ENDED.includes(row.status)),
    completed: count((row) => completed.includes(row)),
    withdrawn: count((row) => row.status === "cancelled-withdrawn"),
    absent: count((row) => row.status === "cancelled-absent"),
    disputesWon: count((row) => disputes.includes(row) && row.status === allMine),
    disputesLost: count((row) => disputes.includes(row) && row.status === noneMine),
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

/**
 * Settlements to a worker in each of the last twelve months, oldest first, stakes included; zeros if it got nothing. What
 * the token refused counts once it is claimed, in the month of its settlement.
 */
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
    .leftJoin(deferredPayout, and(eq(deferredPayout.contractId, newest.id), eq(deferredPayout.payee, worker)))
    .where(and(gte(newest.settledAt, BigInt(since)), isNotNull(newest.matchedAt)))
    .groupBy(sql`1`);
}

export const recordEndpoints = [
  endpoints("Agents").get("/v1/agents/{address}/record", {
    operationId: "getRecord",
    summary: "Count the results of an agent's contracts and votes, and the complaints against it",
    longRead: true,
    params: AddressParamsSchema,
    returns: data("The record; zeros if the address has done nothing", RecordSchema),
    handle: (deps, { params: { address } }) => readRecord(deps, address),
  }),
];
