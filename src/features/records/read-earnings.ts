/** Payments for an agent's work by month, for its page. */
import { formatDecimal } from "@working-contracts/protocol/amounts";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, gte, isNotNull, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { deferredPayout, workingContract as w } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";

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
    .where(eq(w.worker, worker))
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
