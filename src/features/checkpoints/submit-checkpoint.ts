/** POST /v1/contracts/{id}/checkpoint: appends to the Worker's checkpoints. */

import { checkpointLeaf } from "@working-contracts/protocol/checkpoints";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, ne } from "drizzle-orm";
import type { Transaction } from "../../db/client.js";
import { checkpoint, operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { agentsOf, stageEvent } from "../../events/log.js";
import { loadContractForAction, requireStatus, requireWorker } from "../contracts/actions.js";
import { lockCheckpoints, readLastCheckpoint } from "./checkpoint-trees.js";
import type { CheckpointContent, CheckpointRow } from "./merkle.js";
import { type CheckpointView, toCheckpoint } from "./read-checkpoints.js";

export type CheckpointDraft = Omit<CheckpointContent, "contractId">;

/**
 * Accepts a checkpoint under a new id, or returns the one that a call with the same id has stored. Of concurrent ones
 * for the same position exactly one passes. Throws 404, 403 (not its worker) and 409 (not in `matched`, a pending
 * delivery, too many bytes, sequence or time out of order).
 */
export async function submitCheckpoint(
  { db, clock }: Pick<Deps, "db" | "clock">,
  {
    id,
    caller,
    checkpointId,
    draft,
  }: { id: Address; caller: Address; checkpointId: string; draft: CheckpointDraft },
): Promise<CheckpointView> {
  // Strangers are refused before the lock, so they cannot delay the Worker.
  requireWorker(await loadContractForAction(db, id), caller);
  return db.transaction(async (tx) => {
    await lockCheckpoints(tx, id);
    const [first] = await tx.select().from(checkpoint).where(eq(checkpoint.id, checkpointId));
    if (first !== undefined) return toCheckpoint(first);
    const now = clock.now();
    const row = await loadContractForAction(tx, id);
    requireStatus(row, "matched", now);
    await requireNoDelivery(tx, id);
    const previous = await readLastCheckpoint(tx, { contractId: id, worker: caller });
    const position = previous === null ? 0 : previous.position + 1;
    requireOrder(draft, previous, now);
    const added = { ...draft, contractId: id, id: checkpointId, createdAt: new Date(now * 1000) };
    const accepted = toCheckpoint(added);
    const totalBytes = (previous?.totalBytes ?? 0) + Buffer.byteLength(JSON.stringify(accepted));
    assertCapacity(totalBytes, checkpointCapacity(row.chain, now));
    await tx
      .insert(checkpoint)
      .values({ ...added, worker: caller, position, totalBytes, leaf: checkpointLeaf(accepted) });
    const { fromSequence, toSequence } = accepted;
    await stageEvent(tx, {
      type: "checkpoint.accepted",
      contractId: id,
      agents: agentsOf(row.chain.client, row.chain.worker),
      data: { checkpointId: accepted.id, fromSequence, toSequence },
      occurredAt: new Date(now * 1000),
      source: `checkpoint:${accepted.id}`,
    });
    return accepted;
  });
}

/** A stored delivery has fixed its root, even if it is not on chain yet. */
async function requireNoDelivery(tx: Transaction, id: Address): Promise<void> {
  const [row] = await tx
    .select({ id: operation.id })
    .from(operation)
    .where(and(eq(operation.escrow, id), eq(operation.kind, "deliver"), ne(operation.state, "rejected")))
    .limit(1);
  if (row === undefined) return;
  throw new AppError("conflict", {
    message: "A delivery is pending; no checkpoint can be added after it.",
  });
}

/**
 * Bytes that a contract's checkpoints can have by now. Checkpoints are kept for good, and prices come back when a contract
 * is cancelled: a day's bytes are what a price that is locked for that day allows. The maximum is for readers: anyone can
 * read the whole list without a key, and proofs build the tree over it in memory.
 */
export function checkpointCapacity(
  { price, matchedAt }: { price: bigint; matchedAt: bigint | null },
  now: number,
): number {
  const perDay = LIMITS.checkpointBytesPerDay * (1 + Number(price) / 1e6);
  const days = 1 + Math.floor(Math.max(0, now - Number(matchedAt ?? now)) / 86_400);
  return Math.min(Math.floor(perDay * days), LIMITS.checkpointBytesPerContract);
}

function assertCapacity(totalBytes: number, maximum: number): void {
  if (totalBytes <= maximum) return;
  const isFinal = maximum === LIMITS.checkpointBytesPerContract;
  throw new AppError("conflict", {
    message: `With this checkpoint the contract's checkpoints would have ${totalBytes} bytes, over the maximum of ${maximum}${isFinal ? "" : ", which grows each day"}. Send a smaller one, deliver, or ${isFinal ? "post a new contract" : "wait"}.`,
    details: { totalBytes, maximum },
  });
}

function requireOrder(draft: CheckpointDraft, previous: CheckpointRow | null, now: number): void {
  const expected = previous === null ? 1 : previous.toSequence + 1;
  const latest = now + LIMITS.checkpointClockSkew;
  const details = {
    expectedFromSequence: expected,
    previousCheckpointedAt: previous?.checkpointedAt.toISOString() ?? null,
  };
  if (draft.fromSequence !== expected) {
    const rule = previous === null ? "the first checkpoint starts at 1" : "the previous toSequence plus 1";
    throw outOfOrder(`fromSequence is ${draft.fromSequence}, expected ${expected}: ${rule}.`, details);
  }
  if (previous !== null && draft.checkpointedAt <= previous.checkpointedAt) {
    throw outOfOrder(
      `checkpointedAt must be later than the previous checkpoint's, ${previous.checkpointedAt.toISOString()}.`,
      details,
    );
  }
  if (draft.checkpointedAt.getTime() > latest * 1000) {
    throw outOfOrder(
      `checkpointedAt may be at most 5 minutes ahead of the chain's time, by ${isoTime(latest)} now.`,
      details,
    );
  }
}

function outOfOrder(message: string, details: Record<string, unknown>): AppError {
  return new AppError("conflict", { message, details });
}
