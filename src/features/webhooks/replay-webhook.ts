/** POST /v1/agents/me/webhooks/{id}/replay: sends past events again. */

import type { Address } from "@working-contracts/protocol/types";
import { and, eq, gt, sql } from "drizzle-orm";
import type { Transaction } from "../../db/client.js";
import { webhook, webhookRetry } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { newestPosition, readPositions } from "../../events/read.js";
import { wakeSql } from "../../webhooks/matching.js";
import { requireReached } from "../events/list-events.js";
import { loadWebhook, type WebhookView } from "./view.js";

/** One event, or all subscribed events after one; `latest` skips unsent events. */
export type Replay = { eventId: bigint } | { after: bigint | "latest" };

/** Throws `not_found`, `conflict` for a disabled webhook, and `invalid_request` for an event that its owner cannot see. */
export async function replayWebhook(
  { db }: Pick<Deps, "db">,
  { caller, id, replay }: { caller: Address; id: string; replay: Replay },
): Promise<WebhookView> {
  return db.transaction(async (tx) => {
    // Locks in the same order as the sender: first the webhook, then its retries.
    await tx.select({ id: webhook.id }).from(webhook).where(eq(webhook.id, id)).for("update");
    const hook = await loadWebhook(tx, { owner: caller, id });
    if (hook.status === "disabled") {
      throw new AppError("conflict", { message: "The webhook is disabled; enable it first." });
    }
    if ("eventId" in replay) await sendAgain(tx, { caller, id, eventId: replay.eventId });
    else await rewind(tx, id, replay.after);
    return loadWebhook(tx, { owner: caller, id });
  });
}

async function sendAgain(
  tx: Transaction,
  { caller, id, eventId }: { caller: Address; id: string; eventId: bigint },
): Promise<void> {
  const [row] = await readPositions(tx, [eventId]);
  if (row === undefined || (row.visibleTo !== null && !row.visibleTo.includes(caller))) {
    const message = `names no event ${eventId}`;
    throw new AppError("invalid_request", {
      message: `eventId: ${message}.`,
      details: [{ path: "eventId", message }],
    });
  }
  await tx
    .insert(webhookRetry)
    .values({ webhookId: id, position: eventId, attempts: 0, nextAttemptAt: sql`now()` })
    .onConflictDoUpdate({
      target: [webhookRetry.webhookId, webhookRetry.position],
      set: { attempts: 0, nextAttemptAt: sql`now()`, firstAttemptAt: sql`now()` },
    });
  await tx
    .update(webhook)
    .set({ pausedUntil: null, nextAttemptAt: sql`now()`, claimedUntil: null })
    .where(eq(webhook.id, id));
}

/** The log is the queue, so a replay only moves the position back. */
async function rewind(tx: Transaction, id: string, after: bigint | "latest"): Promise<void> {
  const newest = await newestPosition(tx);
  const position = after === "latest" ? newest : after;
  requireReached(position, newest);
  await tx
    .delete(webhookRetry)
    .where(
      and(
        eq(webhookRetry.webhookId, id),
        after === "latest" ? undefined : gt(webhookRetry.position, position),
      ),
    );
  await tx
    .update(webhook)
    .set({
      sentUpTo: position,
      wantedUpTo: after === "latest" ? position : wakeSql,
      pausedUntil: null,
      nextAttemptAt: sql`now()`,
      claimedUntil: null,
    })
    .where(eq(webhook.id, id));
}
