/** The outbox: actions are stored here before anything is sent. */
import { and, eq, ne, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { operation } from "../db/schema.js";
import { AppError } from "../errors.js";
import type { NewOperation } from "./operations.js";
import type { OperationRow } from "./outbox-waiter.js";

export type { NewOperation } from "./operations.js";
export type { OperationRow, OutboxWaiter } from "./outbox-waiter.js";

/** Maximum unsent operations before new ones are refused: a few minutes of work for one signer. */
export const MAX_QUEUED = 5000;

/** An existing row can be rejected, which frees its key, between our insert and our read. */
const INSERT_TRIES = 5;

/**
 * Stores an action for the relayer. If the outbox already has a row with the same authorization or once-key that is not
 * rejected, returns that row with `existing: true`; compare its `requestHash`, `nonce` or `data` before you treat it as
 * your own. Throws `unavailable` (503, Retry-After), without storing anything, if the queue is full.
 */
export async function enqueue(
  db: Executor,
  newOperation: NewOperation,
  { maxQueued = MAX_QUEUED }: { maxQueued?: number } = {},
): Promise<{ operation: OperationRow; existing: boolean }> {
  const roomLeft = await hasRoom(db, maxQueued);
  for (let attempt = 0; attempt < INSERT_TRIES; attempt += 1) {
    if (roomLeft) {
      const [row] = await db.insert(operation).values(rowOf(newOperation)).onConflictDoNothing().returning();
      if (row !== undefined) return { operation: row, existing: false };
    }
    const existing = await findExisting(db, newOperation);
    if (existing !== undefined) return { operation: existing, existing: true };
    if (!roomLeft) throw queueFull();
  }
  throw new AppError("unavailable", {
    message: "Another attempt at the same action is just ending. Retry in a second.",
    retryable: true,
    retryAfterSeconds: 1,
  });
}

/** Throws `unavailable` if {@link enqueue} would refuse a new action. Call it before quoting a payment. */
export async function assertQueueCapacity(
  db: Executor,
  { maxQueued = MAX_QUEUED }: { maxQueued?: number } = {},
): Promise<void> {
  if (!(await hasRoom(db, maxQueued))) throw queueFull();
}

/** Returns the operation with this payment authorization that is not rejected; a retried request resumes it. */
export async function findByAuthorization(
  db: Executor,
  payment: { asset: string; payer: string; nonce: string },
): Promise<OperationRow | undefined> {
  const [row] = await db
    .select()
    .from(operation)
    .where(
      and(
        eq(operation.asset, payment.asset),
        eq(operation.payer, payment.payer),
        eq(operation.nonce, payment.nonce),
        ne(operation.state, "rejected"),
      ),
    )
    .limit(1);
  return row;
}

async function hasRoom(db: Executor, maxQueued: number): Promise<boolean> {
  const beyond = await db
    .select({ id: operation.id })
    .from(operation)
    .where(sql`${operation.state} in ('queued', 'held')`)
    .offset(maxQueued - 1)
    .limit(1);
  return beyond.length === 0;
}

async function findExisting(
  db: Executor,
  { payment, onceKey }: NewOperation,
): Promise<OperationRow | undefined> {
  if (payment !== undefined) {
    const row = await findByAuthorization(db, payment);
    if (row !== undefined) return row;
  }
  if (onceKey === undefined) return undefined;
  const [row] = await db
    .select()
    .from(operation)
    .where(and(eq(operation.onceKey, onceKey), ne(operation.state, "rejected")))
    .limit(1);
  return row;
}

function rowOf({ payment, ...fields }: NewOperation): typeof operation.$inferInsert {
  return {
    ...fields,
    asset: payment?.asset ?? null,
    payer: payment?.payer ?? null,
    nonce: payment?.nonce ?? null,
  };
}

function queueFull(): AppError {
  return new AppError("unavailable", {
    message: "Too many operations are waiting for the chain. No payment was taken; retry later.",
    retryable: true,
    retryAfterSeconds: 10,
  });
}
