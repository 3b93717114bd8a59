/** Records the on-chain results of a batch and its operations. */

import { relayAbi } from "@working-contracts/protocol/abi";
import { and, arrayOverlaps, eq, inArray, sql } from "drizzle-orm";
import { type Hex, parseEventLogs, type TransactionReceipt } from "viem";
import type { Transaction } from "../db/client.js";
import { APPLIED, batch, operation } from "../db/schema.js";
import { isOneOf } from "../db/statements.js";
import { notifyDone } from "./claim.js";
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
import { blockRefOf, findReceipt, isAncestor } from "./transaction.js";

/**
 * Records which of the batch's operations were applied and which failed. A failure here does not count for an operation
 * that another batch applied or now carries. A failure counts only once it `isDeep`: before that, a reorg can include
 * the same bytes in another order and apply an operation already reported as failed.
 */
export async function recordReceipt(
  context: SignerContext,
  { id, operationIds }: { id: bigint; operationIds: bigint[] },
  receipt: TransactionReceipt,
  { isDeep = false } = {},
): Promise<void> {
  const failures = failuresIn(context, receipt);
  const atFault = await signersAtFault(context, failuresById(operationIds, failures), receipt);
  const state = isDeep ? "final" : "mined";
  const inclusion = inclusionOf(receipt);
  const outcome = await fenced(context, async (tx) => {
    await recordBatch(tx, { id, state, hasFailures: failures.size > 0 }, receipt, context.options.gasPolicy);
    const operations = await tx
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
    const rows = new Map(operations.map((row) => [row.id, row]));
    const ordinary: bigint[] = [];
    const seconds: number[] = [];
    let applied = 0;
    let failed = 0;
    for (const [index, operationId] of operationIds.entries()) {
      const row = rows.get(operationId);
      if (row === undefined) continue;
      const data = failures.get(index);
      const isHere = row.batchId === id;
      if (data === undefined) {
        applied += 1;
        if (row.state === "sent") seconds.push(row.age);
        if (isHere && row.state !== "rejected") ordinary.push(operationId);
        else if (!APPLIED.includes(row.state))
          await adopt(tx, operationId, { batchId: id, state, inclusion });
      } else if (isHere && row.reported && row.tries < REPORTED_TRIES) {
        await requeueReported(context, tx, { id: operationId, batchId: id }, data);
      } else if (isHere && isDeep && row.state === "sent") {
        if (await endFailed(context, tx, { ...row, batchId: id }, { data, inclusion, atFault })) failed += 1;
      }
    }
    if (ordinary.length > 0) {
      await tx
        .update(operation)
        .set({ state, reason: null, reasonData: null, ...inclusion, updatedAt: sql`now()` })
        .where(isOneOf(operation.id, ordinary));
    }
    await notifyDone(tx, operationIds);
    return { applied, failed, seconds };
  });
  reportReceipt(context, { id, operationIds }, receipt, { state, failures, ...outcome });
}

function reportReceipt(
  { metrics, logger, signer }: SignerContext,
  { id, operationIds }: { id: bigint; operationIds: bigint[] },
  { transactionHash, blockNumber, gasUsed, effectiveGasPrice }: TransactionReceipt,
  result: {
    state: "mined" | "final";
    failures: ReadonlyMap<number, Hex>;
    applied: number;
    failed: number;
    seconds: number[];
  },
): void {
  const { state, failures, applied, failed, seconds } = result;
  logger.info(
    {
      signer,
      batch: id.toString(),
      hash: transactionHash,
      block: blockNumber.toString(),
      operations: operationIds.map(String),
      ...(failures.size > 0 && { failed: [...failures.keys()].map((index) => String(operationIds[index])) }),
    },
    `batch ${state}`,
  );
  metrics?.batches(state);
  metrics?.mined({ signer, gasPaid: gasUsed * effectiveGasPrice, seconds });
  if (applied > 0) metrics?.operations(state, applied);
  if (failed > 0) metrics?.operations("rejected", failed);
}

/** A reorg moved it before an operation it depends on. It was reported as applied, so it is retried. */
async function requeueReported(
  { logger, signer }: SignerContext,
  tx: Transaction,
  { id, batchId }: { id: bigint; batchId: bigint },
  data: Hex,
): Promise<void> {
  await tx
    .update(operation)
    .set({ ...UNBATCHED, state: "queued", tries: sql`${operation.tries} + 1` })
    .where(eq(operation.id, id));
  logger.warn(
    { signer, operation: id.toString(), batch: batchId.toString(), reason: failureReason(data) },
    "operation failed on chain after it was reported as applied; queued again",
  );
}

/** Records the failures that {@link recordReceipt} left open, once the batch's block is deep. */
export async function recordFailures(
  context: SignerContext,
  { id, operationIds }: { id: bigint; operationIds: bigint[] },
  receipt: TransactionReceipt,
): Promise<void> {
  const failures = failuresIn(context, receipt);
  const atFault = await signersAtFault(context, failuresById(operationIds, failures), receipt);
  const inclusion = inclusionOf(receipt);
  const failed = await fenced(context, async (tx) => {
    const open = await tx
      .select({ id: operation.id, tries: operation.tries })
      .from(operation)
      .where(and(eq(operation.batchId, id), eq(operation.state, "sent")))
      .for("update");
    let count = 0;
    for (const row of open) {
      const data = failures.get(operationIds.indexOf(row.id));
      if (data === undefined) continue;
      if (await endFailed(context, tx, { ...row, batchId: id }, { data, inclusion, atFault })) count += 1;
    }
    await notifyDone(tx, operationIds);
    return count;
  });
  if (failed > 0) context.metrics?.operations("rejected", failed);
}

/**
 * Requeues a failed operation, or rejects it after {@link FAILED_TRIES} tries; at once if its signer is at fault, which
 * could pass every simulation and fail again. Returns whether it was rejected.
 */
async function endFailed(
  { logger, signer }: SignerContext,
  tx: Transaction,
  row: { id: bigint; batchId: bigint; tries: number },
  { data, inclusion, atFault }: { data: Hex; inclusion: Inclusion; atFault: ReadonlyMap<bigint, string> },
): Promise<boolean> {
  const reason = failureReason(data);
  const signerAtFault = atFault.get(row.id);
  const isRejected = signerAtFault !== undefined || row.tries >= FAILED_TRIES;
  if (signerAtFault !== undefined) await notifyDone(tx, await rejectWaiting(tx, signerAtFault));
  await tx
    .update(operation)
    .set(
      isRejected
        ? { state: "rejected", reason, reasonData: data, ...inclusion, updatedAt: sql`now()` }
        : { ...UNBATCHED, state: "queued", tries: row.tries + 1 },
    )
    .where(eq(operation.id, row.id));
  logger.warn(
    { signer, operation: row.id.toString(), batch: row.batchId.toString(), reason },
    isRejected ? "operation failed on chain" : "operation failed on chain; queued again",
  );
  return isRejected;
}

/** Revert data of each failed operation, by its index in the batch. */
function failuresIn({ deployment }: SignerContext, receipt: TransactionReceipt): Map<number, Hex> {
  const logs = receipt.logs.filter(({ address }) => address.toLowerCase() === deployment.relay);
  const failed = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs });
  return new Map(failed.map(({ args }) => [Number(args.index), args.reason]));
}

const failuresById = (
  operationIds: readonly bigint[],
  failures: ReadonlyMap<number, Hex>,
): Map<bigint, Hex> =>
  new Map(
    [...failures].flatMap(([index, data]) => operationIds.slice(index, index + 1).map((id) => [id, data])),
  );

type Inclusion = ReturnType<typeof inclusionOf>;

function inclusionOf({ transactionHash, blockNumber, blockHash }: TransactionReceipt) {
  return { transactionHash, blockNumber, blockHash };
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
 * Marks an operation that had been rejected or requeued as applied by this batch. If a newer operation now holds its
 * authorization or once-key, the row stays unchanged: the newer one will meet the effect on chain.
 */
async function adopt(
  tx: Transaction,
  id: bigint,
  applied: {
    batchId: bigint;
    state: "mined" | "final";
    inclusion: Inclusion;
  },
): Promise<void> {
  const { batchId, state, inclusion } = applied;
  await tx.execute(sql`
    update app.operation mine set state = ${state}, reason = null, reason_data = null, retry_at = null,
      claimed_until = null, batch_id = ${batchId.toString()}::bigint,
      transaction_hash = ${inclusion.transactionHash}, block_number = ${inclusion.blockNumber.toString()}::bigint,
      block_hash = ${inclusion.blockHash}, updated_at = now()
    where id = ${id.toString()}::bigint and not exists (
      select 1 from app.operation other where other.id <> mine.id and other.state <> 'rejected'
        and (other.once_key = mine.once_key
          or (other.asset = mine.asset and other.payer = mine.payer and other.nonce = mine.nonce)))`);
}

export async function finaliseBatches(context: SignerContext, ids: bigint[]): Promise<void> {
  const finalised = await fenced(context, async (tx) => {
    await tx.update(batch).set({ state: "final", updatedAt: sql`now()` }).where(inArray(batch.id, ids));
    const rows = await tx
      .update(operation)
      .set({ state: "final", updatedAt: sql`now()` })
      .where(and(inArray(operation.batchId, ids), eq(operation.state, "mined")))
      .returning({ id: operation.id });
    return rows.length;
  });
  for (const _ of ids) context.metrics?.batches("final");
  if (finalised > 0) context.metrics?.operations("final", finalised);
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
      const wait = state === "reverted" ? retryDelay(row.tries) / 1000 : 0;
      await tx
        .update(operation)
        .set({
          state: wait === 0 ? "queued" : "held",
          reason: state === "reverted" ? "BatchReverted" : null,
          tries: row.tries + 1,
          retryAt: wait === 0 ? null : sql`now() + make_interval(secs => ${wait})`,
          batchId: null,
          signer: null,
          updatedAt: sql`now()`,
        })
        .where(eq(operation.id, row.id));
    }
    return rows.map((row) => row.id.toString());
  });
  context.metrics?.operations("requeued", requeued.length);
  context.logger.warn({ batch: id.toString(), state, operations: requeued }, "operations queued again");
}

/** How long after its last update an abandoned batch is checked at each new block. */
const WATCH_TIME = "1 hour";
const MAX_WATCHED = 50;

/**
 * Abandoned batches are reverted, or superseded by a foreign transaction, with their operations queued again. A reorg
 * can still include such a batch, so its receipt is checked before any of its operations is recorded as failed.
 */
const ABANDONED = inArray(batch.state, ["reverted", "superseded"]);

/** Records every abandoned batch that carried one of these operations and was mined after all. */
export async function recordAbandoned(
  context: SignerContext,
  operationIds: bigint[],
  head: Head,
): Promise<void> {
  if (operationIds.length === 0) return;
  const batches = await context.db
    .select()
    .from(batch)
    .where(and(ABANDONED, arrayOverlaps(batch.operationIds, operationIds)));
  await recordApplied(context, batches, head);
}

/** Does the same for the signer's recently abandoned batches. */
export async function followAbandoned(context: SignerContext, head: Head): Promise<void> {
  const batches = await context.db
    .select()
    .from(batch)
    .where(
      and(
        eq(batch.signer, context.signer),
        ABANDONED,
        sql`${batch.updatedAt} > now() - ${WATCH_TIME}::interval`,
      ),
    )
    .limit(MAX_WATCHED);
  await recordApplied(context, batches, head);
}

async function recordApplied(
  context: SignerContext,
  batches: (typeof batch.$inferSelect)[],
  head: Head,
): Promise<void> {
  for (const one of batches) {
    const receipt = await findReceipt(context, one.attempts);
    if (receipt?.status !== "success" || !(await isAncestor(context, blockRefOf(receipt), head))) continue;
    context.logger.warn(
      { batch: one.id.toString(), hash: receipt.transactionHash },
      "abandoned batch was mined",
    );
    await recordReceipt(context, one, receipt);
  }
}
