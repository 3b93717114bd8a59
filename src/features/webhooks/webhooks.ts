/** An owner's calls on its webhooks. The sender (src/webhooks/) reads the same rows. */
import { z } from "@hono/zod-openapi";
import { EVENT_TYPES } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, isNotNull, sql } from "drizzle-orm";
import type { Config } from "../../config.js";
import { ADVISORY_LOCKS, type Executor, lock, type Transaction } from "../../db/client.js";
import { webhook, webhookRetry } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, invalidField, notFound } from "../../errors.js";
import { newestPosition, readPosition, requireReached } from "../../events/log.js";
import { shown } from "../../http/schemas.js";
import { type WebhookRow, wakeSql } from "../../webhooks/deliveries.js";
import { createSecret, readSecret } from "../../webhooks/signing.js";
import { resolveTarget, TargetRefused } from "../../webhooks/target.js";
import { requireActiveKey } from "../agents/keys.js";
import { isParty } from "../events/stream-events.js";

const time = z.iso.datetime().nullable();

/** Events that {@link WebhookSchema} lists as given up. */
const MAX_LISTED = 20;

export const WebhookSchema = z
  .object({
    id: z.string(),
    url: z.string(),
    description: z.string().nullable(),
    agent: z.string().nullable(),
    contractId: z.string().nullable(),
    types: z.array(z.enum(EVENT_TYPES)).nullable(),
    /** `failing`: the newest attempt failed. `disabled`: nothing is sent until its owner enables it. */
    status: z.enum(["active", "failing", "disabled"]),
    createdAt: z.iso.datetime(),
    disabledAt: time,
    disabledReason: z.string().nullable(),
    lastAttemptAt: time,
    lastSuccessAt: time,
    lastStatus: z.number().nullable(),
    lastError: z.string().nullable(),
    pendingRetries: z.number(),
    givenUp: z.array(z.string()).openapi({
      description: `Ids of the newest ${MAX_LISTED} events that were abandoned after ten attempts, newest first`,
    }),
  })
  .openapi("Webhook");

export type WebhookView = z.infer<typeof WebhookSchema>;

type WebhookDraft = Pick<WebhookRow, "url" | "description" | "agent" | "contractId" | "types">;

/** Creates a webhook, or returns that of an earlier call with its id. Throws `invalid_request` for the URL, `too_many_webhooks`. */
export async function createWebhook(
  { db, config }: Pick<Deps, "db" | "config">,
  { caller, id, draft }: { caller: Address; id: string; draft: WebhookDraft },
): Promise<WebhookView & { secret: string }> {
  const earlier = async (executor: Executor) => {
    const [first] = await selectWebhooks(executor, caller, id);
    return first && { ...toWebhook(first), secret: await readSecret(first.row, config) };
  };
  // Its target can have changed since the first call.
  const known = await earlier(db);
  if (known !== undefined) return known;
  await requireTarget(config, draft.url);
  const { secret, stored } = await createSecret(id, config);
  return db.transaction(async (tx) => {
    await requireActiveKey(tx, caller);
    await lock(tx, `webhooks:${caller}`);
    const first = await earlier(tx);
    if (first !== undefined) return first;
    if ((await tx.$count(webhook, eq(webhook.owner, caller))) >= LIMITS.webhooksPerAgent) {
      throw new AppError("too_many_webhooks", {
        message: `This address has ${LIMITS.webhooksPerAgent} webhooks, the maximum.`,
        retryable: false,
      });
    }
    if (draft.agent !== caller) await requireRoomForWatcher(tx, caller);
    const position = await newestPosition(tx);
    await tx
      .insert(webhook)
      .values({ ...draft, ...stored, id, owner: caller, sentUpTo: position, wantedUpTo: position });
    return { ...(await loadWebhook(tx, { owner: caller, id })), secret };
  });
}

/** Throws 429 `too_many_webhooks` if no more webhooks can watch others, or no more of strangers and the caller is one. */
async function requireRoomForWatcher(tx: Transaction, caller: Address): Promise<void> {
  const { webhooksForOthers, webhooksForOthersOfStrangers } = LIMITS;
  const { rows } = await tx.execute<{ count: number }>(sql`
    select count(*)::int as count from (
      select 1 from ${webhook} where agent is distinct from owner and disabled_at is null limit ${webhooksForOthers}) watchers`);
  const count = rows[0]?.count ?? 0;
  const isFull = count >= webhooksForOthers;
  if (count < webhooksForOthersOfStrangers || (!isFull && (await isParty(tx, caller, { isMatched: true }))))
    return;
  throw new AppError("too_many_webhooks", {
    message: `The service accepts no more webhooks for other agents' events${isFull ? "" : ", except from agents with a matched contract or a stake"}. Read GET /v1/events instead.`,
    retryable: false,
  });
}

type WebhookChanges = { [Field in keyof WebhookDraft]?: WebhookDraft[Field] | undefined } & {
  disabled?: boolean | undefined;
};

/** Changes the given fields. Enabled again, it receives its pending events and everything since. Throws `not_found`, and what {@link createWebhook} throws. */
export async function updateWebhook(
  { db, config }: Pick<Deps, "db" | "config">,
  { caller, id, changes }: { caller: Address; id: string; changes: WebhookChanges },
): Promise<WebhookView> {
  const { disabled, ...draft } = changes;
  if (draft.url !== undefined) await requireTarget(config, draft.url);
  await db.transaction(async (tx) => {
    await requireActiveKey(tx, caller);
    // Otherwise events matched meanwhile would count as processed without having been.
    if (disabled === false)
      await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching})`);
    if (disabled === false || (draft.agent !== undefined && draft.agent !== caller)) {
      const stored = await loadWebhook(tx, { owner: caller, id });
      const isWatcher = stored.agent !== caller && stored.disabledAt === null;
      const { agent } = { ...stored, ...draft };
      if (!isWatcher && agent !== caller) await requireRoomForWatcher(tx, caller);
    }
    await tx
      .update(webhook)
      .set({
        ...draft,
        ...(disabled === true ? SWITCH_OFF : {}),
        ...(disabled === false ? SWITCH_ON : {}),
        // A sender that is working with the old values must no longer write.
        leasedUntil: null,
      })
      .where(and(eq(webhook.owner, caller), eq(webhook.id, id)));
    // The outage in which they failed ends here: the next success finds none.
    if (disabled === false)
      await tx
        .update(webhookRetry)
        .set({ nextAttemptAt: sql`now()` })
        .where(and(eq(webhookRetry.webhookId, id), isNotNull(webhookRetry.nextAttemptAt)));
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
    if (deleted === undefined) throw notFound(`You have no webhook ${id}.`);
    await tx.delete(webhookRetry).where(eq(webhookRetry.webhookId, id));
    return deleted;
  });
}

/** One event, or all subscribed events after one; `latest` skips unsent events. */
type Replay = { eventId: bigint } | { after: bigint | "latest" };

/** Throws `not_found`, `conflict` if disabled, `invalid_request` for a hidden event, `rate_limited` if too many wait. */
export async function replayWebhook(
  { db }: Pick<Deps, "db">,
  { caller, id, replay }: { caller: Address; id: string; replay: Replay },
): Promise<WebhookView> {
  return db.transaction(async (tx) => {
    // Locks in the same order as the sender: first the webhook, then its retries.
    await tx.select({ id: webhook.id }).from(webhook).where(eq(webhook.id, id)).for("update");
    const hook = await loadWebhook(tx, { owner: caller, id });
    const newest = await newestPosition(tx);
    if ("eventId" in replay) await requireVisible(tx, caller, replay.eventId);
    else if (replay.after !== "latest") requireReached(replay.after, newest);
    if (hook.status === "disabled") throw conflict("The webhook is disabled; enable it first.");
    let moved = {};
    if ("eventId" in replay) {
      requireRoomForRetry(hook);
      await sendAgain(tx, id, replay.eventId);
    } else moved = await rewind(tx, id, { after: replay.after, newest });
    await tx
      .update(webhook)
      .set({ ...moved, pausedUntil: null, nextAttemptAt: sql`now()`, leasedUntil: null })
      .where(eq(webhook.id, id));
    return loadWebhook(tx, { owner: caller, id });
  });
}

function requireRoomForRetry({ pendingRetries }: WebhookView): void {
  if (pendingRetries < LIMITS.webhookRetries) return;
  throw new AppError("rate_limited", {
    message: `This webhook has ${pendingRetries} events waiting for a retry, the maximum. Wait until some are delivered, or replay everything after an event.`,
    retryAfterSeconds: 60,
  });
}

async function requireVisible(tx: Transaction, caller: Address, eventId: bigint): Promise<void> {
  const row = await readPosition(tx, eventId);
  if (row === undefined || (row.visibleTo !== null && !row.visibleTo.includes(caller))) {
    throw invalidField("eventId", `must be an event that you can read, not ${eventId}`);
  }
}

async function sendAgain(tx: Transaction, id: string, eventId: bigint): Promise<void> {
  await tx
    .insert(webhookRetry)
    .values({ webhookId: id, position: eventId, attempts: 0, nextAttemptAt: sql`now()` })
    .onConflictDoUpdate({
      target: [webhookRetry.webhookId, webhookRetry.position],
      set: { attempts: 0, nextAttemptAt: sql`now()`, firstAttemptAt: sql`now()` },
    });
}

/** The log is the queue, so a replay only moves the position back. */
async function rewind(
  tx: Transaction,
  id: string,
  { after, newest }: { after: bigint | "latest"; newest: bigint },
) {
  const isLater = after === "latest" ? undefined : gt(webhookRetry.position, after);
  await tx.delete(webhookRetry).where(and(eq(webhookRetry.webhookId, id), isLater));
  return after === "latest"
    ? { sentUpTo: newest, wantedUpTo: newest, failingSince: null }
    : { sentUpTo: after, wantedUpTo: wakeSql };
}

const pendingRetries = sql<number>`(select count(*)::int from ${webhookRetry}
  where webhook_id = ${webhook.id} and next_attempt_at is not null)`;
const givenUp = sql<string[]>`array(select position::text from ${webhookRetry}
  where webhook_id = ${webhook.id} and next_attempt_at is null order by webhook_retry.position desc limit ${MAX_LISTED})`;

/** An owner's webhooks, oldest first; at most {@link LIMITS.webhooksPerAgent}. */
export async function listWebhooks(db: Executor, owner: Address): Promise<WebhookView[]> {
  const rows = await selectWebhooks(db, owner).orderBy(asc(webhook.createdAt), asc(webhook.id));
  return rows.map(toWebhook);
}

function selectWebhooks(db: Executor, owner: Address, id?: string) {
  return db
    .select({ row: webhook, pendingRetries, givenUp })
    .from(webhook)
    .where(and(eq(webhook.owner, owner), id === undefined ? undefined : eq(webhook.id, id)))
    .$dynamic();
}

/** Throws `not_found` unless this owner has it, so no one learns of other owners' webhooks. */
export async function loadWebhook(
  db: Executor,
  { owner, id }: { owner: Address; id: string },
): Promise<WebhookView> {
  const [found] = await selectWebhooks(db, owner, id);
  if (found === undefined) throw notFound(`You have no webhook ${id}.`);
  return toWebhook(found);
}

function statusOf({ disabledAt, failures }: WebhookRow): WebhookView["status"] {
  if (disabledAt !== null) return "disabled";
  return failures > 0 ? "failing" : "active";
}

const toWebhook = ({ row, ...deliveries }: Awaited<ReturnType<typeof selectWebhooks>>[number]): WebhookView =>
  shown(WebhookSchema, { ...row, ...deliveries, status: statusOf(row) });

/** Throws `invalid_request` for a URL that would not be called now; it is judged again before every call. */
async function requireTarget(config: Config, url: string): Promise<void> {
  try {
    await resolveTarget(url, { allowPrivate: config.webhooksToPrivateAddresses });
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error;
    throw invalidField("url", error.message);
  }
}
