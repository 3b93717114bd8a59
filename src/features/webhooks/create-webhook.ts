/** POST /v1/agents/me/webhooks. */
import { randomUUID } from "node:crypto";
import type { EventType } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { count, eq, sql } from "drizzle-orm";
import { webhook } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { newestPosition } from "../../events/read.js";
import { createSecret } from "../../webhooks/signing.js";
import { requireTarget } from "./require-target.js";
import { loadWebhook, type WebhookView } from "./view.js";

export interface WebhookDraft {
  url: string;
  description: string | null;
  agent: Address | null;
  contractId: Address | null;
  types: EventType[] | null;
}

/**
 * Creates a webhook for all events from now on, with its signing secret, which is shown only once. Throws
 * `invalid_request` for a URL that the service would not call, and 429 `too_many_webhooks`.
 */
export async function createWebhook(
  { db, config }: Pick<Deps, "db" | "config">,
  { caller, draft }: { caller: Address; draft: WebhookDraft },
): Promise<WebhookView & { secret: string }> {
  await requireTarget(config, draft.url);
  const id = randomUUID();
  const { secret, stored } = await createSecret(id, config);
  return db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`webhooks:${caller}`}, 0))`);
    const [own] = await tx.select({ count: count() }).from(webhook).where(eq(webhook.owner, caller));
    if ((own?.count ?? 0) >= LIMITS.webhooksPerAgent) {
      throw new AppError("too_many_webhooks", {
        message: `This address has ${LIMITS.webhooksPerAgent} webhooks, the maximum.`,
        retryable: false,
      });
    }
    const position = await newestPosition(tx);
    await tx
      .insert(webhook)
      .values({ ...draft, ...stored, id, owner: caller, sentUpTo: position, wantedUpTo: position });
    return { ...(await loadWebhook(tx, { owner: caller, id })), secret };
  });
}
