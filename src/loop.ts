/**
 * The skeleton of every background loop: rounds, pauses that a notification ends, backoff after failures, sparse logging,
 * shutdown after a round.
 */
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

export interface Pause {
  /**
   * Waits until the time is over, the signal is aborted, or a notification arrives. One that arrived since the last wait
   * counts; if none did, this returns false.
   */
  wait(ms: number, signal: AbortSignal): Promise<boolean>;
  close(): void;
}

/** Notifications can be lost: `wait` needs a time after which the loop looks anyway. */
export function createPause({ notifications, channels }: Wakers): Pause {
  let hasNews = false;
  let wake = (): void => {};
  const onNews = (): void => {
    hasNews = true;
    wake();
  };
  const subscriber = { onNotification: onNews, onListening: onNews };
  const unlisten = channels.map((channel) => notifications.listen(channel, subscriber));
  return {
    async wait(ms, signal) {
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
    close() {
      for (const stop of unlisten) stop();
    },
  };
}

/** Many notifications in a row start at most one round in this time. */
const WAKE_INTERVAL_MS = 50;
/** A long outage must not flood the log. */
const LOG_EVERY_FAILURES = 30;

/**
 * Runs `round` every `intervalMs`, on a notification of `wakers`, and again at once while it returns true. After a failed round the pause doubles, up
 * to `maxBackoffMs`; the first failure and every 30th are logged, unless `isExpected` accepts the error. The signal
 * that a round receives is aborted by `stop`.
 */
export function createLoop(options: {
  name: string;
  logger: Pick<BaseLogger, "warn">;
  intervalMs: number;
  wakers?: Wakers;
  maxBackoffMs: number;
  isExpected?: (error: unknown) => boolean;
  // biome-ignore lint/suspicious/noConfusingVoidType: a round that never has more to do returns nothing.
  round(stopping: AbortSignal): Promise<boolean | void>;
}): Loop {
  const { name, logger, intervalMs, maxBackoffMs, isExpected = () => false, round } = options;
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
      const rest = isWakeable ? WAKE_INTERVAL_MS : ms;
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
