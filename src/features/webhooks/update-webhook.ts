/** PATCH and DELETE /v1/agents/me/webhooks/{id}. */

import type { Address } from "@working-contracts/protocol/types";
import { and, eq, sql } from "drizzle-orm";
import { ADVISORY_LOCKS } from "../../db/advisory-locks.js";
import { webhook, webhookRetry } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { wakeSql } from "../../webhooks/matching.js";
import type { WebhookDraft } from "./create-webhook.js";
import { requireTarget } from "./require-target.js";
import { loadWebhook, type WebhookView } from "./view.js";

export type WebhookChanges = { [Field in keyof WebhookDraft]?: WebhookDraft[Field] | undefined } & {
  disabled?: boolean | undefined;
};

/**
 * Changes the given fields. When enabled again, it gets everything since it was disabled. Throws `not_found`, and
 * `invalid_request` for a URL that the service would not call.
 */
export async function updateWebhook(
  { db, config }: Pick<Deps, "db" | "config">,
  { caller, id, changes }: { caller: Address; id: string; changes: WebhookChanges },
): Promise<WebhookView> {
  const { disabled, ...draft } = changes;
  if (draft.url !== undefined) await requireTarget(config, draft.url);
  await db.transaction(async (tx) => {
    // Otherwise events matched meanwhile would count as processed without having been.
    if (disabled === false)
      await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching})`);
    await tx
      .update(webhook)
      .set({
        ...draft,
        ...(disabled === true ? SWITCH_OFF : {}),
        ...(disabled === false ? SWITCH_ON : {}),
        // A sender that is working with the old values must no longer write.
        claimedUntil: null,
      })
      .where(and(eq(webhook.owner, caller), eq(webhook.id, id)));
  });
  return loadWebhook(db, { owner: caller, id });
}

const SWITCH_OFF = {
  disabledAt: sql`coalesce(disabled_at, now())`,
  disabledReason: sql`coalesce(disabled_reason, 'by its owner')`,
};

const SWITCH_ON = {
  disabledAt: null,
  disabledReason: null,
  failures: 0,
  failingSince: null,
  pausedUntil: null,
  wantedUpTo: wakeSql,
  nextAttemptAt: sql`now()`,
};

/** Only deliveries in progress are still sent. Throws `not_found`. */
export async function deleteWebhook(
  { db }: Pick<Deps, "db">,
  { caller, id }: { caller: Address; id: string },
): Promise<{ id: string }> {
  return db.transaction(async (tx) => {
    const [deleted] = await tx
      .delete(webhook)
      .where(and(eq(webhook.owner, caller), eq(webhook.id, id)))
      .returning({ id: webhook.id });
    if (deleted === undefined) throw new AppError("not_found", { message: `You have no webhook ${id}.` });
    await tx.delete(webhookRetry).where(eq(webhookRetry.webhookId, id));
    return deleted;
  });
}
