/** The outbox: acts stored before anything is sent, and the wait for what became of them. */
import { and, eq, ne, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { operation } from "../db/schema.js";
import { AppError } from "../errors.js";
import type { NewOperation } from "./operations.js";
import type { OperationRow } from "./outbox-waiter.js";

export type { NewOperation } from "./operations.js";
export type { OperationRow, OutboxWaiter } from "./outbox-waiter.js";

/** Unsent operations beyond which new ones are refused: a few minutes' work of one signer. */
export const MAX_QUEUED = 5000;

/** An existing row can be rejected, and so free its key, between our insert and our look at it. */
const INSERT_TRIES = 5;

/**
 * Stores an act to be carried out. Where the same authorization or once-key is in the outbox and not rejected, that
 * row comes back with `existing`: compare its `requestHash`, `nonce` or `data` before taking it for your own.
 * Throws `unavailable` (503, Retry-After) where the queue is full; nothing is stored then.
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
    message: "Another attempt at the same act is just ending; repeat the call in a second",
    retryable: true,
    retryAfterSeconds: 1,
  });
}

/** Throws `unavailable` where {@link enqueue} would refuse a new act: to be asked before a payment is quoted. */
export async function assertQueueCapacity(
  db: Executor,
  { maxQueued = MAX_QUEUED }: { maxQueued?: number } = {},
): Promise<void> {
  if (!(await hasRoom(db, maxQueued))) throw queueFull();
}

/** The live row for a payment authorization: what a repeated call has to pick up. */
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

function rowOf({ payment, ...act }: NewOperation): typeof operation.$inferInsert {
  return {
    ...act,
    asset: payment?.asset ?? null,
    payer: payment?.payer ?? null,
    nonce: payment?.nonce ?? null,
  };
}

function queueFull(): AppError {
  return new AppError("unavailable", {
    message: "Too many operations are waiting for the chain; no payment was taken. Repeat the call later",
    retryable: true,
    retryAfterSeconds: 10,
  });
}
