/**
 * Sends events to webhooks in background loops with bounded concurrency. A slow or dead target delays neither the
 * service nor, for long, other targets. Any number of processes can run a sender.
 */
import type { BaseLogger } from "pino";
import type { Database } from "../db/client.js";
import { EVENTS_APPENDED, toEvent } from "../events/log.js";
import type { MasterKeys } from "../master-key.js";
import { createConcurrencyLimit, createCounts, createLoop, type Loop, type Wakers } from "../scheduling.js";
import {
  createMatching,
  type DeliveryResult,
  type Lane,
  leaseDue,
  nextTask,
  postpone,
  recordOutcome,
  releaseLease,
  type Task,
  WEBHOOKS_DUE,
  type WebhookRow,
} from "./deliveries.js";
import { signedHeaders } from "./signing.js";
import { postTo, resolveTarget, type Target, type TargetPolicy, TargetRefused } from "./target.js";

/** In case a notification is lost, and for retries. */
const INTERVAL_MS = 1000;
const MAX_BACKOFF_MS = 10_000;
/** See "Slow webhooks" in docs/decisions.md. */
const CONCURRENCY = { fast: 100, slow: 50 };
const PER_OWNER = 4;
const PER_ADDRESS = { fast: 32, slow: 4 };
/** Turns that look for their next event at a time: the relayer uses the same pool. */
const LOOKING = { fast: 4, slow: 2 };
const TIMEOUT_MS = 10_000;
/** Length of a turn, after which the next webhook is served. */
const TURN_MS = 5_000;

interface SenderDeps {
  db: Database;
  keys: MasterKeys;
  policy: TargetPolicy;
  notifications: Wakers["notifications"];
  logger: Pick<BaseLogger, "warn">;
}

/** The loop that sends webhooks. Any number of processes can run it: each leases those that are due. */
export function createWebhookSender(deps: SenderDeps): Loop {
  const { db, notifications, logger } = deps;
  const turns = { fast: new Set<Promise<void>>(), slow: new Set<Promise<void>>() };
  const ofOwner = createCounts();
  const looking = { fast: createConcurrencyLimit(LOOKING.fast), slow: createConcurrencyLimit(LOOKING.slow) };
  const atAddress = { fast: createCounts(), slow: createCounts() };

  /** Resolves first, because any number of names can lead to one address; the turn then calls the address counted here. */
  const serve = async (hook: WebhookRow, lane: Lane, stopping: AbortSignal): Promise<void> => {
    const startedAt = performance.now();
    const target = resolveTarget(hook.url, deps.policy);
    const address = await target.then(
      (resolved) => resolved.address,
      () => hook.url,
    );
    const resolvedInMs = performance.now() - startedAt;
    if (atAddress[lane].count(address) >= PER_ADDRESS[lane]) return postpone(db, hook, lane);
    atAddress[lane].add(address, 1);
    const next = () => looking[lane](() => nextTask(db, hook));
    await takeTurn(deps, hook, { target, resolvedInMs, next, stopping }).finally(() =>
      atAddress[lane].add(address, -1),
    );
  };

  const begin = async (lane: Lane, stopping: AbortSignal): Promise<boolean> => {
    const limit = CONCURRENCY[lane] - turns[lane].size;
    if (limit <= 0) return false;
    const hooks = await leaseDue(db, { lane, limit, except: ofOwner.at(PER_OWNER) });
    for (const hook of hooks) {
      if (ofOwner.count(hook.owner) >= PER_OWNER) {
        await postpone(db, hook, lane);
        continue;
      }
      ofOwner.add(hook.owner, 1);
      const turn = serve(hook, lane, stopping)
        .catch((error: unknown) => logger.warn({ error, webhook: hook.id }, "webhooks: turn failed"))
        .finally(() => {
          turns[lane].delete(turn);
          ofOwner.add(hook.owner, -1);
        });
      turns[lane].add(turn);
    }
    return hooks.length > 0;
  };

  const timing = { logger, intervalMs: INTERVAL_MS, maxBackoffMs: MAX_BACKOFF_MS };
  const on = (channel: string): Wakers => ({ notifications, channels: [channel] });
  const loops = [
    createLoop({
      ...timing,
      name: "webhooks, matching",
      wakers: on(EVENTS_APPENDED),
      round: createMatching(db),
    }),
    ...(["fast", "slow"] as const).map((lane) =>
      createLoop({
        ...timing,
        name: `webhooks, ${lane} lane`,
        wakers: on(WEBHOOKS_DUE),
        round: (stopping) => begin(lane, stopping),
      }),
    ),
  ];
  return {
    start() {
      for (const loop of loops) loop.start();
    },
    /** Also waits for pending requests. */
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await Promise.all([...turns.fast, ...turns.slow]);
    },
  };
}

interface Turn {
  target: Promise<Target>;
  /** Counts in the duration of each attempt: a name that resolves slowly holds a place in the lane, too. */
  resolvedInMs: number;
  next(): Promise<Task | null>;
  stopping: AbortSignal;
}

/** Sends events one after another for a few seconds, until one fails or the target is slow. */
async function takeTurn(deps: SenderDeps, hook: WebhookRow, turn: Turn): Promise<void> {
  const { next, stopping } = turn;
  const endsAt = performance.now() + TURN_MS;
  while (!stopping.aborted && performance.now() < endsAt) {
    const task = await next();
    if (task === null) break;
    const outcome = await attempt(deps.keys, { hook, task, turn });
    const rest = await recordOutcome(deps.db, hook, { task, outcome });
    if (rest === null || rest > 0) break;
  }
  await releaseLease(deps.db, hook);
}

/** Rejects if no master key opens the webhook's secret: that is no fault of its target. */
async function attempt(
  keys: MasterKeys,
  { hook, task, turn }: { hook: WebhookRow; task: Task; turn: Pick<Turn, "target" | "resolvedInMs"> },
): Promise<DeliveryResult> {
  const event = toEvent(task.row);
  const body = JSON.stringify(event);
  const signed = await signedHeaders(hook, { keys, messageId: `evt_${event.id}`, body, now: new Date() });
  const startedAt = performance.now();
  const outcome = (status: number | null, error: string | null): DeliveryResult => ({
    ok: error === null,
    status,
    error,
    seconds: (turn.resolvedInMs + performance.now() - startedAt) / 1000,
  });
  try {
    const status = await postTo(await turn.target, {
      body,
      headers: {
        "content-type": "application/json",
        "user-agent": "working-contracts",
        ...signed,
      },
      timeoutMs: TIMEOUT_MS,
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
