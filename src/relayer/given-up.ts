/**
 * Abandoned batches: reverted, or superseded by a foreign transaction, with their operations queued again. A reorg can
 * still include such a batch, so its receipt is checked before any of its operations is recorded as failed.
 */
import { and, arrayOverlaps, eq, inArray, sql } from "drizzle-orm";
import { batch } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";
import { findReceipt, isTrusted, placeOf } from "./receipts.js";
import { recordReceipt } from "./results.js";

/** How long after its last update an abandoned batch is checked at each new block. */
const WATCH_TIME = "1 hour";
const MAX_WATCHED = 50;

const GIVEN_UP = inArray(batch.state, ["reverted", "superseded"]);

/** Records every abandoned batch that carried one of these operations and was mined after all. */
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

/** Does the same for the signer's recently abandoned batches. */
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
    context.logger.warn(
      { batch: one.id.toString(), hash: receipt.transactionHash },
      "abandoned batch was mined",
    );
    await recordReceipt(context, one, receipt, false);
  }
}
