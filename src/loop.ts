/** The skeleton of every background loop: rounds, backoff after failures, sparse logging, shutdown after a round. */
import { setTimeout as delay } from "node:timers/promises";
import type { BaseLogger } from "pino";

export interface Loop {
  start(): void;
  /** Resolves after the current round. */
  stop(): Promise<void>;
}

/** A long outage must not flood the log. */
const LOG_EVERY_FAILURES = 30;

/**
 * Runs `round` every `intervalMs`, and again at once while it returns true. After a failed round the pause doubles, up
 * to `maxBackoffMs`; the first failure and every 30th are logged, unless `isExpected` accepts the error. The signal
 * that a round receives is aborted by `stop`.
 */
export function createLoop(options: {
  name: string;
  logger: Pick<BaseLogger, "warn">;
  intervalMs: number;
  maxBackoffMs: number;
  isExpected?: (error: unknown) => boolean;
  // biome-ignore lint/suspicious/noConfusingVoidType: a round that never has more to do returns nothing.
  round(stopping: AbortSignal): Promise<boolean | void>;
}): Loop {
  const { name, logger, intervalMs, maxBackoffMs, isExpected = () => false, round } = options;
  const stopping = new AbortController();
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
      await delay(Math.max(intervalMs, backoff), undefined, { signal: stopping.signal }).catch(
        () => undefined,
      );
    }
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
