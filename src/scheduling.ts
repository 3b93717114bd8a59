/** When work runs in this process: background loops, and limits on what runs at once. */
import { setTimeout as delay } from "node:timers/promises";
import type { BaseLogger } from "pino";
import type { Notifications } from "./db/client.js";

export interface Loop {
  start(): void;
  /** Resolves after the current round. */
  stop(): Promise<void>;
}

/** Notifications that end a loop's pause early. */
export interface Wakers {
  notifications: Pick<Notifications, "listen">;
  channels: readonly string[];
}

/** Notifications can be lost: `wait` needs a time after which the loop looks anyway. */
export function createPause({ notifications, channels }: Wakers) {
  let hasNews = false;
  let wake = (): void => {};
  const onNews = (): void => {
    hasNews = true;
    wake();
  };
  const subscriber = { onNotification: onNews, onListening: onNews };
  const unlisten = channels.map((channel) => notifications.listen(channel, subscriber));
  return {
    /** Waits for the time, an abort, or a notification since the last wait. Returns whether there was one. */
    async wait(ms: number, signal: AbortSignal): Promise<boolean> {
      if (!hasNews) {
        const woken = new AbortController();
        wake = () => woken.abort();
        // Not `AbortSignal.any`: `signal` outlives all pauses, and would remember each of them.
        signal.addEventListener("abort", wake, { once: true });
        if (signal.aborted) wake();
        await delay(ms, undefined, { signal: woken.signal }).catch(() => undefined);
        signal.removeEventListener("abort", wake);
        wake = () => {};
      }
      const had = hasNews;
      hasNews = false;
      return had;
    },
    close(): void {
      for (const stop of unlisten) stop();
    },
  };
}

/** A long outage must not flood the log. */
const LOG_EVERY_FAILURES = 30;

export interface LoopOptions {
  name: string;
  logger: Pick<BaseLogger, "warn">;
  intervalMs: number;
  wakers?: Wakers | undefined;
  /** Many notifications in a row start at most one round in this time. */
  wakeIntervalMs?: number;
  maxBackoffMs: number;
  isExpected?: (error: unknown) => boolean;
  // biome-ignore lint/suspicious/noConfusingVoidType: a round that never has more to do returns nothing.
  round(stopping: AbortSignal): Promise<boolean | void>;
}

/**
 * Runs `round` every `intervalMs`, on a notification of `wakers`, and again at once while it returns true. After a
 * failed round the pause doubles, up to `maxBackoffMs`; the first failure and every 30th are logged, unless
 * `isExpected` accepts the error. The signal that a round receives is aborted by `stop`.
 */
export function createLoop(options: LoopOptions): Loop {
  const { name, logger, intervalMs, wakeIntervalMs = 50, maxBackoffMs, round } = options;
  const { isExpected = () => false } = options;
  const stopping = new AbortController();
  const pause = options.wakers === undefined ? null : createPause(options.wakers);
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      let more = false;
      try {
        more = (await round(stopping.signal)) === true;
        failures = 0;
      } catch (error) {
        failures += 1;
        if (!isExpected(error) && failures % LOG_EVERY_FAILURES === 1) {
          logger.warn({ failures, error }, `${name}: round failed`);
        }
      }
      if (more) continue;
      const backoff = Math.min(intervalMs * 2 ** Math.min(failures, 10), maxBackoffMs);
      const ms = Math.max(intervalMs, backoff);
      const isWakeable = pause !== null && failures === 0;
      const rest = isWakeable ? wakeIntervalMs : ms;
      await delay(rest, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (isWakeable) await pause.wait(ms, stopping.signal);
    }
    pause?.close();
  };

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** A check of the database or the node that hangs counts as failed. */
const CHECK_TIMEOUT_MS = 3_000;

/** The result of a check; null if it fails or takes longer than {@link CHECK_TIMEOUT_MS}. */
export function orNull<T>(answer: Promise<T>): Promise<T | null> {
  const done = new AbortController();
  const timeout = delay(CHECK_TIMEOUT_MS, null, { signal: done.signal }).catch(() => null);
  return Promise.race([answer.catch(() => null), timeout]).finally(() => done.abort());
}

/** Counts by key; forgets keys that are at zero. */
export function createCounts() {
  const counts = new Map<string, number>();
  const count = (key: string): number => counts.get(key) ?? 0;
  return {
    count,
    /** A negative number takes back what was added. */
    add(key: string, number: number): void {
      const sum = count(key) + number;
      if (sum > 0) counts.set(key, sum);
      else counts.delete(key);
    },
    /** The keys that have reached the limit. */
    at: (limit: number): string[] => [...counts].flatMap(([key, sum]) => (sum >= limit ? [key] : [])),
  };
}

export type ConcurrencyLimit = <T>(task: () => Promise<T>) => Promise<T>;

/**
 * Runs at most `count` tasks at once, the rest in order. A task that runs for longer than `maxCountedMs` is no longer
 * counted; one that waits for longer than `maxWaitMs` starts beyond the limit.
 */
export function createConcurrencyLimit(
  count: number,
  { maxCountedMs, maxWaitMs }: { maxCountedMs?: number; maxWaitMs?: number } = {},
): ConcurrencyLimit {
  let free = count;
  const waiting = new Set<() => void>();

  const release = (): void => {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else next();
  };

  /** Whether the task starts within the limit. */
  const wait = (): Promise<boolean> =>
    new Promise((resolve) => {
      const end = (isCounted: boolean): void => {
        clearTimeout(timer);
        waiting.delete(start);
        resolve(isCounted);
      };
      const start = () => end(true);
      const timer = maxWaitMs === undefined ? undefined : setTimeout(end, maxWaitMs, false);
      waiting.add(start);
    });

  return async (task) => {
    let isCounted = true;
    if (free > 0) free -= 1;
    else isCounted = await wait();
    const stopCounting = (): void => {
      if (isCounted) release();
      isCounted = false;
    };
    const timer = maxCountedMs === undefined ? undefined : setTimeout(stopCounting, maxCountedMs);
    try {
      return await task();
    } finally {
      clearTimeout(timer);
      stopCounting();
    }
  };
}

export interface Reader {
  /** An agent's addresses are free, so all callers at an IP address take turns as one. */
  ip: string;
  caller: string;
}

interface Waiting {
  caller: string;
  start(): void;
  refuse(): void;
}

/**
 * Runs at most `count` tasks at once, and at most one of each IP address. IP addresses take turns, and so do the
 * callers at one: many tasks delay their own caller most. If more tasks wait than the maximum, for one IP address or in
 * all, the newest task of whoever has most fails with the error that `refuse` makes.
 */
export function createFairConcurrencyLimit(
  count: number,
  options: { maxWaiting: number; maxWaitingPerIp: number; refuse: () => Error },
): <T>(reader: Reader, task: () => Promise<T>) => Promise<T> {
  const running = new Set<string>();
  /** In the order of turns. */
  const queues = new Map<string, Waiting[]>();
  let waiting = 0;

  const startNext = (): void => {
    for (const [ip, queue] of queues) {
      if (running.size >= count) return;
      if (running.has(ip)) continue;
      running.add(ip);
      waiting -= 1;
      queues.delete(ip);
      const next = queue.shift();
      if (queue.length > 0) queues.set(ip, queue);
      next?.start();
    }
  };

  const refuseNewest = (queue: Waiting[]): void => {
    waiting -= 1;
    queue.pop()?.refuse();
  };

  /** Throws for a task that is itself the newest of whoever has most. */
  const makeRoom = (queue: Waiting[], caller: string): void => {
    if (queue.length >= options.maxWaitingPerIp) {
      const most = queue.at(-1)?.caller ?? caller;
      if (countOf(queue, most) <= countOf(queue, caller) + 1) throw options.refuse();
      refuseNewest(queue);
    } else if (waiting >= options.maxWaiting) {
      const longest = [...queues.values()].reduce(
        (most, one) => (one.length > most.length ? one : most),
        queue,
      );
      if (longest.length > queue.length + 1) refuseNewest(longest);
      // The first of an IP address waits beyond the maximum, up to twice as many.
      else if (queue.length > 0 || waiting >= 2 * options.maxWaiting) throw options.refuse();
    }
  };

  const join = (ip: string, caller: string): Promise<void> => {
    const queue = queues.get(ip) ?? [];
    makeRoom(queue, caller);
    queues.set(ip, queue);
    waiting += 1;
    return new Promise((start, reject) => {
      insert(queue, { caller, start, refuse: () => reject(options.refuse()) });
    });
  };

  return async ({ ip, caller }, task) => {
    if (running.size >= count || running.has(ip)) await join(ip, caller);
    else running.add(ip);
    try {
      return await task();
    } finally {
      running.delete(ip);
      startNext();
    }
  };
}

const countOf = (queue: Waiting[], caller: string): number =>
  queue.filter((task) => task.caller === caller).length;

/** Behind as many tasks of each other caller as its own has. The last task is then of the caller that has most. */
function insert(queue: Waiting[], task: Waiting): void {
  const own = countOf(queue, task.caller);
  const seen = new Map<string, number>();
  const later = queue.findIndex(({ caller }) => {
    const before = seen.get(caller) ?? 0;
    seen.set(caller, before + 1);
    return before > own;
  });
  queue.splice(later < 0 ? queue.length : later, 0, task);
}
