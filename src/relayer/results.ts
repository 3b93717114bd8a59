/** Records the on-chain results of a batch and its operations. */
import { relayAbi } from "@working-contracts/protocol/abi";
import { and, arrayOverlaps, eq, inArray, type SQL, sql } from "drizzle-orm";
import { type Hex, parseEventLogs, type TransactionReceipt } from "viem";
import type { Transaction } from "../db/client.js";
import { APPLIED, type BatchRow, batch, operation } from "../db/schema.js";
import { isOneOf } from "../db/statements.js";
import { fenced, type Head, type SignerContext } from "./context.js";
import {
  FAILED_TRIES,
  failureReason,
  REPORTED_TRIES,
  rejectWaiting,
  retryDelay,
  signersAtFault,
} from "./failures.js";
import { recordBatch } from "./gas-accounts.js";
import { notifyDone } from "./lease.js";
import type { OperationRow } from "./outbox.js";
import { findReceipt, isAncestor } from "./transaction.js";

/**
 * Records which of the batch's operations were applied and which failed. A failure here does not count for an operation
 * that another batch applied or now carries. A failure counts only once it `isDeep`: before that, a reorg can include
 * the same bytes in another order and apply an operation already reported as failed.
 */
export async function recordReceipt(
  context: SignerContext,
  batchRow: BatchRow,
  receipt: TransactionReceipt,
  { isDeep = false } = {},
): Promise<void> {
  const { id, operationIds } = batchRow;
  const failures = failuresIn(context, batchRow, receipt);
  const atFault = await signersAtFault(context, failures, receipt);
  const state = isDeep ? "final" : "mined";
  const { applied, rejected, seconds } = await fenced(context, async (tx) => {
    await recordBatch(tx, { id, state, hasFailures: failures.size > 0 }, receipt, context.options.gasPolicy);
    const rows = await tx
      .select({
        id: operation.id,
        state: operation.state,
        batchId: operation.batchId,
        reported: sql<boolean>`${operation.response} is not null`,
        tries: operation.tries,
        age: sql<number>`extract(epoch from now() - ${operation.createdAt})::float8`,
      })
      .from(operation)
      .where(isOneOf(operation.id, operationIds))
      .for("update");
    let rejected = 0;
    for (const row of rows) {
      const data = failures.get(row.id);
      if (data === undefined) continue;
      const isHere = row.batchId === id;
      if (isHere && row.reported && row.tries < REPORTED_TRIES) {
        await endFailed(context, tx, row, { data, receipt, isReported: true });
      } else if (isHere && isDeep && row.state === "sent") {
        const signerAtFault = atFault.get(row.id);
        if (await endFailed(context, tx, row, { data, receipt, signerAtFault })) rejected += 1;
      }
    }
    const applied = rows.filter((row) => !failures.has(row.id));
    await storeApplied(tx, { id, state, ids: applied.map((row) => row.id.toString()) }, receipt);
    await notifyDone(tx, operationIds);
    const seconds = applied.flatMap((row) => (row.state === "sent" ? [row.age] : []));
    return { applied: applied.length, rejected, seconds };
  });

  const { metrics, logger, signer } = context;
  const { transactionHash: hash, blockNumber, gasUsed, effectiveGasPrice } = receipt;
  const facts = {
    signer,
    batch: id.toString(),
    hash,
    block: blockNumber.toString(),
    operations: operationIds.map(String),
  };
  const failed = failures.size > 0 && { failed: [...failures.keys()].map(String) };
  logger.info({ ...facts, ...failed }, `batch ${state}`);
  metrics?.batches(state);
  // A batch with failures is recorded again once it is deep.
  if (batchRow.state !== "mined") metrics?.mined({ signer, gasPaid: gasUsed * effectiveGasPrice, seconds });
  if (applied > 0) metrics?.operations(state, applied);
  if (rejected > 0) metrics?.operations("rejected", rejected);
}

/**
 * Requeues a failed operation, or rejects it: after {@link FAILED_TRIES} tries, or at once if its signer is at fault,
 * who could pass every simulation and fail again. One that was reported as applied is always requeued: a reorg moved it
 * before an operation that it depends on. Returns whether it was rejected.
 */
async function endFailed(
  { logger, signer }: SignerContext,
  tx: Transaction,
  row: Pick<OperationRow, "id" | "batchId" | "tries">,
  failure: {
    data: Hex;
    receipt: TransactionReceipt;
    isReported?: boolean;
    signerAtFault?: string | undefined;
  },
): Promise<boolean> {
  const { data, receipt, isReported = false, signerAtFault } = failure;
  const { transactionHash, blockNumber, blockHash } = receipt;
  const reason = failureReason(data);
  const isRejected = !isReported && (signerAtFault !== undefined || row.tries >= FAILED_TRIES);
  if (signerAtFault !== undefined) await notifyDone(tx, await rejectWaiting(tx, signerAtFault));
  const rejected = { state: "rejected", reason, reasonData: data, updatedAt: sql`now()` } as const;
  const queued = { ...UNBATCHED, state: "queued", tries: row.tries + 1 } as const;
  await tx
    .update(operation)
    .set(isRejected ? { ...rejected, transactionHash, blockNumber, blockHash } : queued)
    .where(eq(operation.id, row.id));
  const cause = isReported ? " after it was reported as applied" : "";
  logger.warn(
    { signer, operation: row.id.toString(), batch: String(row.batchId), reason },
    `operation failed on chain${cause}${isRejected ? "" : "; queued again"}`,
  );
  return isRejected;
}

/** Revert data of each failed operation. */
function failuresIn(
  { deployment }: SignerContext,
  { operationIds }: BatchRow,
  receipt: TransactionReceipt,
): Map<bigint, Hex> {
  const logs = receipt.logs.filter(({ address }) => address.toLowerCase() === deployment.relay);
  const failed = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs });
  const named = failed.flatMap(({ args: { index, reason } }) =>
    operationIds.slice(Number(index), Number(index) + 1).map((id) => [id, reason] as const),
  );
  return new Map(named);
}

/** Columns of an operation that waits for another batch. */
const UNBATCHED = {
  retryAt: null,
  batchId: null,
  signer: null,
  transactionHash: null,
  blockNumber: null,
  blockHash: null,
  updatedAt: sql`now()`,
};

/**
 * Marks operations as applied by this batch, also those that had been rejected or requeued: but if a newer operation holds
 * the authorization or once-key, such a row stays unchanged, and the newer one will meet the effect on chain.
 */
async function storeApplied(
  tx: Transaction,
  { id, state, ids }: { id: bigint; state: "mined" | "final"; ids: string[] },
  { transactionHash, blockNumber, blockHash }: TransactionReceipt,
): Promise<void> {
  await tx.execute(sql`
    update app.operation mine set state = ${state}, reason = null, reason_data = null, retry_at = null,
      leased_until = null, batch_id = ${id.toString()}::bigint, transaction_hash = ${transactionHash},
      block_number = ${blockNumber.toString()}::bigint, block_hash = ${blockHash}, updated_at = now()
    where id = any(${sql.param(ids)}::bigint[]) and (
      (batch_id = ${id.toString()}::bigint and state <> 'rejected')
      or (state not in ('mined', 'final') and not exists (
        select 1 from app.operation other where other.id <> mine.id and other.state <> 'rejected'
          and (other.once_key = mine.once_key
            or (other.asset = mine.asset and other.payer = mine.payer and other.nonce = mine.nonce)))))`);
}

/** Makes batches and their mined operations final. Throws OwnershipLost, without writing, if another process owns the signer. */
export async function finalizeBatches(context: SignerContext, ids: bigint[]): Promise<void> {
  if (ids.length === 0) return;
  const finalized = await fenced(context, async (tx) => {
    await tx.update(batch).set({ state: "final", updatedAt: sql`now()` }).where(inArray(batch.id, ids));
    const { rowCount } = await tx
      .update(operation)
      .set({ state: "final", updatedAt: sql`now()` })
      .where(and(inArray(operation.batchId, ids), eq(operation.state, "mined")));
    return rowCount ?? 0;
  });
  for (const _ of ids) context.metrics?.batches("final");
  if (finalized > 0) context.metrics?.operations("final", finalized);
}

/** Reopens batches whose block left the chain. Their signed bytes are still valid, so they wait for a receipt again. */
export async function reopenBatches(context: SignerContext, ids: bigint[]): Promise<void> {
  if (ids.length === 0) return;
  const nowhere = { transactionHash: null, blockNumber: null, blockHash: null, updatedAt: sql`now()` };
  await fenced(context, async (tx) => {
    await tx
      .update(batch)
      .set({ state: "sent", ...nowhere })
      .where(inArray(batch.id, ids));
    await tx
      .update(operation)
      .set({ state: "sent", ...nowhere })
      .where(and(inArray(operation.batchId, ids), inArray(operation.state, APPLIED)));
  });
}

/** Requeues the operations of a batch that cannot apply, after a revert with a growing delay. Drops none. */
export async function requeueBatch(
  context: SignerContext,
  id: bigint,
  state: "reverted" | "superseded",
  receipt: TransactionReceipt | null,
): Promise<void> {
  const requeued = await fenced(context, async (tx) => {
    await recordBatch(tx, { id, state }, receipt, context.options.gasPolicy);
    const rows = await tx
      .select({ id: operation.id, tries: operation.tries })
      .from(operation)
      .where(and(eq(operation.batchId, id), eq(operation.state, "sent")))
      .for("update");
    for (const row of rows) {
      const retryAt = sql`now() + make_interval(secs => ${retryDelay(row.tries) / 1000})`;
      const held = { state: "held", reason: "BatchReverted", retryAt } as const;
      const queued = { state: "queued", reason: null } as const;
      await tx
        .update(operation)
        .set({ ...UNBATCHED, tries: row.tries + 1, ...(state === "reverted" ? held : queued) })
        .where(eq(operation.id, row.id));
    }
    return rows.map((row) => row.id.toString());
  });
  context.metrics?.operations("requeued", requeued.length);
  context.logger.warn({ batch: id.toString(), state, operations: requeued }, "operations queued again");
}

/** How long an abandoned batch, or the final batch of a signer without an owner, is checked after its last update. */
export const WATCH_TIME = "1 hour";
const MAX_WATCHED = 50;

/** Abandoned batches: a reorg can still include one, so it is checked before its operations count as failed. */
const readAbandoned = ({ db }: SignerContext, condition: SQL | undefined) =>
  db
    .select()
    .from(batch)
    .where(and(inArray(batch.state, ["reverted", "superseded"]), condition));

/** Records every abandoned batch that carried one of these operations and was mined after all. */
export async function recordAbandoned(
  context: SignerContext,
  operationIds: bigint[],
  head: Head,
): Promise<void> {
  if (operationIds.length === 0) return;
  const carrying = arrayOverlaps(batch.operationIds, operationIds);
  await recordApplied(context, await readAbandoned(context, carrying), head);
}

/** Does the same for the signer's recently abandoned batches. */
export async function followAbandoned(context: SignerContext, head: Head): Promise<void> {
  const isRecent = sql`${batch.updatedAt} > now() - ${WATCH_TIME}::interval`;
  const recent = readAbandoned(context, and(eq(batch.signer, context.signer), isRecent));
  await recordApplied(context, await recent.limit(MAX_WATCHED), head);
}

async function recordApplied(context: SignerContext, batches: BatchRow[], head: Head): Promise<void> {
  for (const row of batches) {
    const receipt = await findReceipt(context, row.attempts);
    if (receipt?.status !== "success" || !(await isAncestor(context, receipt, head))) continue;
    context.logger.warn(
      { batch: row.id.toString(), hash: receipt.transactionHash },
      "abandoned batch was mined",
    );
    await recordReceipt(context, row, receipt);
  }
}
