/**
 * Sends events to webhooks in background loops with bounded concurrency. A slow or dead target delays neither the
 * service nor, for long, other targets. Any number of processes can run a sender.
 */
import type { BaseLogger } from "pino";
import type { Database } from "../db/client.js";
import { EVENTS_APPENDED } from "../events/append.js";
import { toEvent } from "../events/read.js";
import { createLoop, type Loop, type Wakers } from "../loop.js";
import type { MasterKeys } from "../master-key.js";
import {
  claimDue,
  matchRound,
  nextTask,
  type Outcome,
  postpone,
  recordOutcome,
  releaseClaim,
  type Task,
  WEBHOOKS_DUE,
  type WebhookRow,
} from "./deliveries.js";
import { signedHeaders } from "./signing.js";
import { postTo, type TargetPolicy, TargetRefused } from "./target.js";

/** In case a notification is lost, and for retries. */
const INTERVAL_MS = 500;
const MAX_BACKOFF_MS = 10_000;
/** Concurrency limits, in total and per host: a dead host leaves room for the others. */
const CONCURRENCY = 100;
const PER_HOST = 4;
const TIMEOUT_MS = 10_000;
/** Length of a turn, after which the next webhook is served. */
const TURN_MS = 5_000;

export interface SenderDeps {
  db: Database;
  keys: MasterKeys;
  policy: TargetPolicy;
  notifications: Wakers["notifications"];
  logger: Pick<BaseLogger, "warn">;
}

export function createWebhookSender(deps: SenderDeps): Loop {
  const { db, notifications, logger } = deps;
  const turns = new Set<Promise<void>>();
  const atHost = new Map<string, number>();

  const begin = async (stopping: AbortSignal): Promise<boolean> => {
    const free = CONCURRENCY - turns.size;
    if (free === 0) return false;
    const hooks = await claimDue(db, free);
    for (const hook of hooks) {
      const { host } = new URL(hook.url);
      const busy = atHost.get(host) ?? 0;
      if (busy >= PER_HOST) {
        await postpone(db, hook);
        continue;
      }
      atHost.set(host, busy + 1);
      const turn = takeTurn(deps, hook, stopping)
        .catch((error: unknown) => logger.warn({ error, webhook: hook.id }, "webhooks: turn failed"))
        .finally(() => {
          turns.delete(turn);
          const left = (atHost.get(host) ?? 1) - 1;
          if (left === 0) atHost.delete(host);
          else atHost.set(host, left);
        });
      turns.add(turn);
    }
    return hooks.length === free;
  };

  const timing = { logger, intervalMs: INTERVAL_MS, maxBackoffMs: MAX_BACKOFF_MS };
  const on = (channel: string): Wakers => ({ notifications, channels: [channel] });
  const loops = [
    createLoop({
      ...timing,
      name: "webhooks, matching",
      wakers: on(EVENTS_APPENDED),
      round: () => matchRound(db),
    }),
    createLoop({ ...timing, name: "webhooks, claiming", wakers: on(WEBHOOKS_DUE), round: begin }),
  ];
  return {
    start() {
      for (const loop of loops) loop.start();
    },
    /** Also waits for pending requests. */
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await Promise.all(turns);
    },
  };
}

/** Sends events one after another for a few seconds, until one fails or the target is slow. */
async function takeTurn(deps: SenderDeps, hook: WebhookRow, stopping: AbortSignal): Promise<void> {
  const endsAt = performance.now() + TURN_MS;
  while (!stopping.aborted && performance.now() < endsAt) {
    const task = await nextTask(deps.db, hook);
    if (task === null) break;
    const outcome = await attempt(deps, hook, task);
    const rest = await recordOutcome(deps.db, hook, { task, outcome });
    if (rest === null || rest > 0) break;
  }
  await releaseClaim(deps.db, hook);
}

async function attempt({ keys, policy }: SenderDeps, hook: WebhookRow, { row }: Task): Promise<Outcome> {
  const startedAt = performance.now();
  const outcome = (status: number | null, error: string | null): Outcome => ({
    ok: error === null,
    status,
    error,
    seconds: (performance.now() - startedAt) / 1000,
  });
  try {
    const event = toEvent(row);
    const body = JSON.stringify(event);
    const messageId = `evt_${event.id}`;
    const status = await postTo(hook.url, {
      body,
      headers: {
        "content-type": "application/json",
        "user-agent": "working-contracts",
        ...(await signedHeaders(hook, { keys, messageId, body, now: new Date() })),
      },
      timeoutMs: TIMEOUT_MS,
      policy,
    });
    return outcome(status, status >= 200 && status < 300 ? null : `the target responded with ${status}`);
  } catch (error) {
    return outcome(null, describe(error));
  }
}

/** For the webhook's owner: what went wrong at its own address, and nothing about our network. */
function describe(error: unknown): string {
  if (error instanceof TargetRefused) return `the URL ${error.message}`;
  const { name, code } = error as { name?: unknown; code?: unknown };
  if (name === "AbortError" || name === "TimeoutError") return `no response within ${TIMEOUT_MS / 1000} s`;
  return typeof code === "string" ? `the connection failed (${code})` : "the connection failed";
}
