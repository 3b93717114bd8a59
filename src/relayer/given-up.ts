/**
 * Batches that were given up, reverted or superseded by a foreign transaction, and whose operations were queued again.
 * A reorganisation can still include them: their receipts are asked for before any of their operations is called failed.
 */
import { and, arrayOverlaps, eq, inArray, sql } from "drizzle-orm";
import { batch } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";
import { findReceipt, isTrusted, placeOf } from "./receipts.js";
import { recordReceipt } from "./results.js";

/** For how long after the last word on it a batch that was given up is looked for at each new block. */
const WATCH_TIME = "1 hour";
const MAX_WATCHED = 50;

const GIVEN_UP = inArray(batch.state, ["reverted", "superseded"]);

/** Records the batches that were given up, carried one of these operations, and were applied after all. */
export async function recordGivenUp(
  context: SignerContext,
  operationIds: bigint[],
  head: Head,
): Promise<void> {
  if (operationIds.length === 0) return;
  const batches = await context.db
    .select()
    .from(batch)
    .where(and(GIVEN_UP, arrayOverlaps(batch.operationIds, operationIds)));
  await recordApplied(context, batches, head);
}

/** The same for the signer's own batches that were given up lately. */
export async function followGivenUp(context: SignerContext, head: Head): Promise<void> {
  const batches = await context.db
    .select()
    .from(batch)
    .where(
      and(
        eq(batch.signer, context.signer),
        GIVEN_UP,
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
    if (receipt?.status !== "success" || !(await isTrusted(context, placeOf(receipt), head))) continue;
    context.logger.warn({ batch: one.id.toString(), hash: receipt.transactionHash }, "given up, yet applied");
    await recordReceipt(context, one, receipt, false);
  }
}
