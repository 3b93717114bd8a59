/** The operator's overview: outbox, signers and pending payouts. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { endedAt } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, desc, eq, gt, inArray, sql } from "drizzle-orm";
import { formatEther } from "viem";
import type { Executor } from "../../db/client.js";
import { deferredPayout, workingContract as w } from "../../db/onchain.js";
import { batch, operation, signerEpoch, terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { readDebtors, readUnearned } from "../../relayer/gas-accounts.js";
import { readOpenOperations } from "../../relayer/outbox.js";
import { factsOf, selectContracts } from "../contracts/view.js";

const LIMIT = 50;
const DEBTORS = 10;
/** Number of newest operations that are searched for rejections. */
const RECENT = 2_000;

export type OperatorOverview = Awaited<ReturnType<typeof readOverview>>;

/** The figures of the page `/operator`. A balance is null if the node does not respond; without the database it rejects. */
export async function readOverview(deps: Pick<Deps, "db" | "clock" | "publicClient" | "config">) {
  const { db } = deps;
  const { gasPolicy } = deps.config;
  const now = deps.clock.now();
  const [queue, signers, unearned, debtors, rejections, waiting, deferredPayouts] = await Promise.all([
    readQueue(db),
    readSigners(deps),
    readUnearned(db, gasPolicy),
    readDebtors(db, gasPolicy, DEBTORS),
    readRejections(db),
    readWaiting(db, now),
    readDeferred(db),
  ]);
  // The limits, and what was relayed beyond what fees earned: in this hour, and by the addresses that owe most.
  const gas = { ...gasPolicy, unearned, debtors };
  return { queue, signers, gas, rejections, ...waiting, deferredPayouts };
}

async function readQueue(db: Executor) {
  const rows = await readOpenOperations(db);
  return rows.map(({ state, kind, count, oldest }) => ({
    state,
    kind,
    count,
    oldestAt: new Date(oldest * 1000).toISOString(),
  }));
}

async function readSigners({ db, publicClient }: Pick<Deps, "db" | "publicClient">) {
  const rows = await db
    .select({
      address: signerEpoch.signer,
      takenAt: signerEpoch.takenAt,
      openBatches: sql<number>`count(${batch.id})::int`,
      oldestOpenAt: sql<Date | null>`min(${batch.createdAt})`.mapWith(batch.createdAt),
      // Transactions signed for the open batch with the most replacements.
      attempts: sql<number>`coalesce(max(jsonb_array_length(${batch.attempts})), 0)::int`,
    })
    .from(signerEpoch)
    .leftJoin(
      batch,
      and(eq(batch.signer, signerEpoch.signer), inArray(batch.state, ["sent", "mined", "quarantined"])),
    )
    .groupBy(signerEpoch.signer)
    .orderBy(signerEpoch.signer);
  /** Native currency, as a decimal; null if the node does not respond. */
  const balanceOf = (address: string): Promise<string | null> =>
    publicClient.getBalance({ address: address as Address }).then(formatEther, () => null);
  return Promise.all(
    rows.map(async ({ takenAt, oldestOpenAt, ...row }) => ({
      ...row,
      balance: await balanceOf(row.address),
      ownedSince: takenAt.toISOString(),
      oldestOpenAt: oldestOpenAt?.toISOString() ?? null,
    })),
  );
}

async function readRejections(db: Executor) {
  const recent = db.select().from(operation).orderBy(desc(operation.id)).limit(RECENT).as("recent");
  const rows = await db
    .select()
    .from(recent)
    .where(eq(recent.state, "rejected"))
    .orderBy(desc(recent.id))
    .limit(LIMIT);
  return rows.map(({ id, kind, escrow, reason, updatedAt }) => ({
    id: id.toString(),
    kind,
    escrow,
    reason,
    at: updatedAt.toISOString(),
  }));
}

/** Ended contracts that are not settled: held for review, and past that. */
async function readWaiting(db: Executor, now: number) {
  const ended = sql`case ${w.phase}
    when 'created' then ${w.matchDeadline}
    when 'matched' then ${w.deliveryDeadline}
    when 'delivered' then ${w.reviewDeadline}
    when 'disputed' then null
    else ${w.endedAt} end`;
  const hasEnded = and(eq(w.settled, false), sql`${ended} <= ${now}`);
  const [held, [due]] = await Promise.all([
    selectContracts(db, and(hasEnded, sql`${ended} + ${w.payoutHold} > ${now}`))
      .orderBy(asc(ended), asc(w.id))
      .limit(LIMIT),
    db
      .select({ count: sql<number>`count(*)::int` })
      .from(w)
      .innerJoin(terms, eq(terms.id, w.id))
      .where(and(hasEnded, sql`${ended} + ${w.payoutHold} <= ${now}`)),
  ]);
  return {
    heldPayouts: held.map((row) => {
      const at = endedAt(factsOf(row), now) ?? now;
      return {
        contractId: row.chain.id,
        title: row.terms.title,
        price: formatDecimal(row.chain.price),
        endedAt: isoTime(at),
        heldUntil: isoTime(at + row.chain.payoutHold),
      };
    }),
    dueSettlements: due?.count ?? 0,
  };
}

/** Refused by the token; anyone can claim them for the payee. */
async function readDeferred(db: Executor) {
  const rows = await db
    .select()
    .from(deferredPayout)
    .where(gt(deferredPayout.amount, 0n))
    .orderBy(asc(deferredPayout.contractId), asc(deferredPayout.payee))
    .limit(LIMIT);
  return rows.map((row) => ({ ...row, amount: formatDecimal(row.amount) }));
}
