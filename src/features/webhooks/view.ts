import type { EventType } from "@working-contracts/protocol/events";
import type { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { webhook, webhookRetry } from "../../db/schema.js";
import { AppError } from "../../errors.js";

/** `failing`: the newest attempt failed. `disabled`: nothing is sent until its owner enables it. */
export type WebhookStatus = "active" | "failing" | "disabled";

export interface WebhookView {
  id: string;
  url: string;
  description: string | null;
  /** Event types to send; null for all. */
  agent: string | null;
  contractId: string | null;
  types: EventType[] | null;
  status: WebhookStatus;
  createdAt: string;
  disabledAt: string | null;
  disabledReason: string | null;
  lastAttemptAt: string | null;
  lastSuccessAt: string | null;
  /** HTTP status of the newest attempt; null if there was no response. */
  lastStatus: number | null;
  /** Error of the newest attempt; null if it succeeded. */
  lastError: string | null;
  /** Events that failed and will be retried. */
  pendingRetries: number;
  /** Ids of the newest events that were abandoned after three days. */
  givenUp: string[];
}

const MAX_LISTED = 20;

const pendingRetries = sql<number>`(select count(*)::int from ${webhookRetry}
  where webhook_id = ${webhook.id} and next_attempt_at is not null)`;
const givenUp = sql<string[]>`array(select position::text from ${webhookRetry}
  where webhook_id = ${webhook.id} and next_attempt_at is null order by position desc limit ${MAX_LISTED})`;

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
  if (found === undefined) throw new AppError("not_found", { message: `You have no webhook ${id}.` });
  return toWebhook(found);
}

function toWebhook({
  row,
  pendingRetries,
  givenUp,
}: Awaited<ReturnType<typeof selectWebhooks>>[number]): WebhookView {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    agent: row.agent,
    contractId: row.contractId,
    types: row.types,
    status: row.disabledAt !== null ? "disabled" : row.failures > 0 ? "failing" : "active",
    createdAt: row.createdAt.toISOString(),
    disabledAt: row.disabledAt?.toISOString() ?? null,
    disabledReason: row.disabledReason,
    lastAttemptAt: row.lastAttemptAt?.toISOString() ?? null,
    lastSuccessAt: row.lastSuccessAt?.toISOString() ?? null,
    lastStatus: row.lastStatus,
    lastError: row.lastError,
    pendingRetries,
    givenUp,
  };
}
