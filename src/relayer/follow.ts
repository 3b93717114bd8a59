/** Follows signed batches: receipts, depth, reorgs, lost and stuck transactions. */
import { and, asc, desc, eq, gte, inArray, lte, sql } from "drizzle-orm";
import type { TransactionReceipt } from "viem";
import { isCanonical } from "../chain/clients.js";
import { type BatchRow, batch } from "../db/schema.js";
import { fenced, type Head, raiseAlarm, type SignerContext } from "./context.js";
import {
  finalizeBatches,
  followAbandoned,
  recordAbandoned,
  recordReceipt,
  reopenBatches,
  requeueBatch,
} from "./results.js";
import { broadcast, replaceIfStuck } from "./send.js";
import { type BlockRef, findNonceUse, findReceipt, isAncestor, maxCostOf } from "./transaction.js";

/** Maximum batches of one kind per round; the next round continues. */
const MAX_OPEN = 200;
/** Nodes limit how many calls one request can carry. */
const PARALLEL_RECEIPTS = 16;
/** Blocks without a receipt for a used nonce before the transaction is considered lost. */
const MISSING_HEADS = 3n;
/** Minimum blocks in quarantine before the operations of a batch whose nonce was used elsewhere are requeued. */
const MIN_QUARANTINE_BLOCKS = 12n;
/** Consecutive rounds with too low a chain nonce before we conclude that the chain lost transactions. */
const SHORT_NONCE_ROUNDS = 5;
/** A node can serve a block before its receipts; the same head is checked again after this time. */
const SAME_HEAD_MS = 500;
/** Blocks between two broadcasts of the same bytes. */
const REBROADCAST_BLOCKS = 2n;

/** Updates every open batch to `head` if the head is new or was last checked some time ago. */
export async function followBatches(context: SignerContext, head: Head): Promise<void> {
  const { memory } = context;
  const isNewHead = memory.followedHead !== head.hash;
  if (!isNewHead && performance.now() - memory.followedAt < SAME_HEAD_MS) return;
  if (isNewHead) await followMined(context, head);
  await followUnmined(context, head);
  if (isNewHead) await followAbandoned(context, head);
  await checkShortNonces(context, head);
  memory.followedHead = head.hash;
  memory.followedAt = performance.now();
}

/** Reopens mined and final batches whose block left the chain. The newest that stands vouches for all older ones. */
async function followMined(context: SignerContext, head: Head): Promise<void> {
  const lost: MinedBatch[] = [];
  for (const mined of await newestMined(context)) {
    const standing = await stands(context, mined);
    // A node without this block tells us nothing about it.
    if (standing === null) return;
    if (standing) break;
    lost.push(mined);
  }
  await reopen(context, lost);
  await finalizeDeep(context, head);
}

type MinedBatch = Pick<BatchRow, "id" | "state"> & BlockRef;

/** In these states a batch has a block. */
const MINED_BATCH = {
  id: batch.id,
  state: batch.state,
  blockNumber: sql<bigint>`${batch.blockNumber}`.mapWith(batch.blockNumber),
  blockHash: sql<string>`${batch.blockHash}`,
};

/**
 * By block; nonces are in another order only if they were recorded on two branches. Ordered by block, Postgres would walk
 * all that other signers have mined since this one's newest.
 */
async function newestMined({ db, signer }: SignerContext): Promise<MinedBatch[]> {
  const mined = await db
    .select(MINED_BATCH)
    .from(batch)
    .where(and(eq(batch.signer, signer), inArray(batch.state, ["mined", "final"])))
    .orderBy(desc(batch.accountNonce))
    .limit(MAX_OPEN);
  return mined.sort((a, b) => Number(b.blockNumber - a.blockNumber));
}

/** Whether a batch's block is canonical; null if the node does not have it. */
const stands = (context: SignerContext, { blockNumber, blockHash }: MinedBatch): Promise<boolean | null> =>
  isCanonical(context, blockNumber, blockHash);

async function reopen(context: SignerContext, lost: readonly MinedBatch[]): Promise<void> {
  if (lost.length === 0) return;
  const { signer, logger, metrics } = context;
  const ids = lost.map(({ id }) => id);
  const lostFinal = lost.filter(({ state }) => state === "final").length;
  logger.warn({ signer, batches: ids.map(String) }, "blocks with batches left the chain");
  if (lostFinal > 0) raiseAlarm(context, "reorganization_beyond_finality", { batches: lostFinal });
  await reopenBatches(context, ids);
  for (const id of ids) forget(context, id);
  metrics?.batches("reorganized");
}

/**
 * Finalizes batches that are deep enough, oldest first. Each one's own block is checked: if batches were recorded on
 * two branches, the newest would wrongly vouch for those on the other.
 */
async function finalizeDeep(context: SignerContext, head: Head): Promise<void> {
  const { db, signer, options } = context;
  const deepest = head.number - BigInt(options.confirmations) + 1n;
  const deep = await db
    .select(MINED_BATCH)
    .from(batch)
    .where(and(eq(batch.signer, signer), eq(batch.state, "mined"), lte(batch.blockNumber, deepest)))
    .orderBy(asc(batch.blockNumber))
    .limit(MAX_OPEN);
  const standing = new Map<string, boolean | null>();
  for (const mined of deep) {
    if (!standing.has(mined.blockHash)) standing.set(mined.blockHash, await stands(context, mined));
  }
  await reopen(
    context,
    deep.filter(({ blockHash }) => standing.get(blockHash) === false),
  );
  const final = deep.filter(({ blockHash }) => standing.get(blockHash) === true).map(({ id }) => id);
  if (final.length > 0) await finalizeBatches(context, await withoutFailures(context, final));
}

/** Records batches with failures again, which count now that they are deep. Returns the batches without any. */
async function withoutFailures(context: SignerContext, ids: bigint[]): Promise<bigint[]> {
  const open = await context.db
    .select()
    .from(batch)
    .where(
      and(
        inArray(batch.id, ids),
        sql`exists (select 1 from app.operation where batch_id = ${batch.id} and state = 'sent')`,
      ),
    );
  for (const row of open) {
    const receipt = await findReceipt(context, row.attempts);
    if (receipt?.blockHash === row.blockHash) await recordReceipt(context, row, receipt, { isDeep: true });
  }
  return ids.filter((id) => !open.some((row) => row.id === id));
}

async function followUnmined(context: SignerContext, head: Head): Promise<void> {
  const { db, publicClient, signer, memory, crashPoint } = context;
  const open = await db
    .select()
    .from(batch)
    .where(and(eq(batch.signer, signer), inArray(batch.state, ["sent", "quarantined"])))
    .orderBy(asc(batch.accountNonce))
    .limit(MAX_OPEN);
  const inFlight: BatchRow[] = [];
  let gap: number | null = null;
  for (let start = 0; start < open.length; start += PARALLEL_RECEIPTS) {
    const group = open.slice(start, start + PARALLEL_RECEIPTS);
    const found = await Promise.allSettled(group.map(({ attempts }) => findReceipt(context, attempts)));
    const ancestors = await ancestorsAmong(context, found, head);
    for (const [i, row] of group.entries()) {
      const result = found[i] as (typeof found)[number];
      if (result.status === "rejected") throw result.reason;
      const receipt = result.value;
      if (receipt !== null && ancestors.has(receipt.blockHash)) {
        memory.missingSince.delete(row.id);
        await crashPoint?.("after_receipt");
        await settleReceipt(context, row, receipt, head);
        await crashPoint?.("after_mined");
        continue;
      }
      if (receipt === null) {
        const nonce = await publicClient.getTransactionCount({ address: signer, blockNumber: head.number });
        if (nonce > row.accountNonce) {
          await followMissing(context, row, head);
          continue;
        }
        if (inFlight.length === 0 && nonce < row.accountNonce) gap = nonce;
        await resend(context, row, head, { isNext: nonce === row.accountNonce });
      }
      inFlight.push(row);
    }
  }
  memory.inFlight = inFlight.length;
  memory.committed = inFlight.reduce((sum, row) => sum + maxCostOf(row.attempts.at(-1)), 0n);
  if (gap === null || gap !== memory.gap?.nonce)
    memory.gap = gap === null ? null : { nonce: gap, since: head.number };
}

/** Replaces a batch without a receipt if it is the signer's next one and stuck; otherwise sends its bytes again. */
async function resend(
  context: SignerContext,
  row: BatchRow,
  head: Head,
  { isNext }: { isNext: boolean },
): Promise<void> {
  context.memory.missingSince.delete(row.id);
  if (row.state === "quarantined") await setState(context, row.id, "sent");
  if (isNext && (await replaceIfStuck(context, row, head))) return;
  await rebroadcast(context, row, head);
}

/**
 * The blocks of these receipts that `head` builds on. None if the newest recorded block is not canonical: then a receipt
 * could come from a different branch. All are asked for in one request, so that one node responds.
 */
async function ancestorsAmong(
  context: SignerContext,
  found: readonly PromiseSettledResult<TransactionReceipt | null>[],
  head: Head,
): Promise<ReadonlySet<string>> {
  const blocks = new Map<string, TransactionReceipt>();
  for (const result of found) {
    const receipt = result.status === "fulfilled" ? result.value : null;
    if (receipt !== null) blocks.set(receipt.blockHash, receipt);
  }
  if (blocks.size === 0) return new Set();
  const [newest] = await newestMined(context);
  const [isAnchored, ...areAncestors] = await Promise.all([
    newest === undefined || stands(context, newest),
    ...[...blocks.values()].map((block) => isAncestor(context, block, head)),
  ]);
  return new Set([...blocks.keys()].filter((_, i) => isAnchored === true && areAncestors[i]));
}

/** Whether the waiting transactions have been blocked for some blocks by an unused lower account nonce. */
export function isBehindGap({ memory }: SignerContext, head: Head): boolean {
  return memory.gap !== null && head.number - memory.gap.since >= MISSING_HEADS;
}

async function settleReceipt(
  context: SignerContext,
  row: BatchRow,
  receipt: TransactionReceipt,
  head: Head,
): Promise<void> {
  const isDeep = head.number - receipt.blockNumber + 1n >= BigInt(context.options.confirmations);
  if (receipt.status === "success") {
    // Before any operation is recorded as failed: an earlier batch might have applied it.
    await recordAbandoned(context, row.operationIds, head);
    await recordReceipt(context, row, receipt, { isDeep });
    forget(context, row.id);
    return;
  }
  context.memory.isAllowed = false;
  // Its operations had no effect, but they can be requeued only once the revert is final.
  if (!isDeep) return;
  raiseAlarm(context, "batch_reverted", { batch: row.id.toString(), hash: receipt.transactionHash });
  context.metrics?.batches("reverted");
  const gasPaid = receipt.gasUsed * receipt.effectiveGasPrice;
  context.metrics?.mined({ signer: context.signer, gasPaid, seconds: [] });
  await requeueBatch(context, row.id, "reverted", receipt);
  forget(context, row.id);
}

/** The nonce is used, but none of our transactions has a receipt: someone else used it, or the node lags. */
async function followMissing(context: SignerContext, row: BatchRow, head: Head): Promise<void> {
  const { memory, options, metrics } = context;
  if (row.state === "sent") {
    const since = memory.missingSince.get(row.id);
    if (since === undefined) memory.missingSince.set(row.id, head.number);
    else if (head.number - since >= MISSING_HEADS) {
      raiseAlarm(context, "foreign_nonce", { batch: row.id.toString(), nonce: row.accountNonce });
      metrics?.batches("quarantined");
      await setState(context, row.id, "quarantined", head.number);
      memory.missingSince.delete(row.id);
    }
    return;
  }
  const confirmations = BigInt(options.confirmations);
  const seenFor = head.number - (row.quarantinedAtBlock ?? head.number);
  if (seenFor < confirmations || seenFor < MIN_QUARANTINE_BLOCKS) return;
  const use = await findNonceUse(context, row, head);
  if (use === "not found") {
    raiseAlarm(context, "nonce_unexplained", { batch: row.id.toString(), nonce: row.accountNonce });
    return;
  }
  // The search continues, or the transaction is ours and its receipt is late, or it is not final yet.
  if (use === null || use.isOurs || head.number - use.blockNumber + 1n < confirmations) return;
  await requeueBatch(context, row.id, "superseded", null);
  forget(context, row.id);
}

/** Sends a batch's transactions again: the node could have dropped them, or never received them. */
async function rebroadcast(context: SignerContext, row: BatchRow, head: Head): Promise<void> {
  const { memory } = context;
  const at = memory.broadcastAt.get(row.id);
  if (at !== undefined && head.number - at < REBROADCAST_BLOCKS && head.number >= at) return;
  memory.broadcastAt.set(row.id, head.number);
  await broadcast(context, ...row.attempts);
}

/**
 * If the chain knows fewer of the signer's transactions than are final here, a reorg beyond our finality removed some. All
 * are broadcast again and the final ones reopened, so that no nonce below the next one stays unused.
 */
async function checkShortNonces(context: SignerContext, head: Head): Promise<void> {
  const { db, publicClient, signer, memory } = context;
  const nonce = await publicClient.getTransactionCount({ address: signer, blockNumber: head.number });
  const missing = await db
    .select()
    .from(batch)
    .where(
      and(
        eq(batch.signer, signer),
        gte(batch.accountNonce, nonce),
        inArray(batch.state, ["final", "reverted", "superseded"]),
      ),
    )
    .orderBy(asc(batch.accountNonce))
    .limit(MAX_OPEN);
  if (missing.length === 0) {
    memory.shortNonces = 0;
    return;
  }
  // A node that is behind one of their blocks says nothing about any of them.
  if (missing.some(({ blockNumber }) => blockNumber !== null && blockNumber > head.number)) return;
  memory.shortNonces += 1;
  if (memory.shortNonces < SHORT_NONCE_ROUNDS) return;
  memory.shortNonces = 0;
  raiseAlarm(context, "reorganization_beyond_finality", { chainNonce: nonce, batches: missing.length });
  await reopenBatches(
    context,
    missing.filter(({ state }) => state === "final").map(({ id }) => id),
  );
  for (const { attempts } of missing) await broadcast(context, ...attempts);
}

async function setState(
  context: SignerContext,
  id: bigint,
  state: "sent" | "quarantined",
  quarantinedAtBlock: bigint | null = null,
): Promise<void> {
  await fenced(context, async (tx) => {
    await tx.update(batch).set({ state, quarantinedAtBlock, updatedAt: sql`now()` }).where(eq(batch.id, id));
  });
}

function forget({ memory }: SignerContext, id: bigint): void {
  memory.broadcastAt.delete(id);
  memory.waitingSince.delete(id);
  memory.missingSince.delete(id);
  memory.searchedTo.delete(id);
}
