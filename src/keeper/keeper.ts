/**
 * Enqueues actions that become due with time alone: settlements, draws, openings, tallies, claims, unbonded stakes. A
 * convenience: statuses are correct without it, and anyone may make the same calls.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { BaseLogger } from "pino";
import type { ChainClock } from "../chain/clock.js";
import type { Database } from "../db/client.js";
import { AppError } from "../errors.js";
import { enqueue, MAX_QUEUED } from "../relayer/outbox.js";
import { findDue } from "./due.js";

export interface Keeper {
  start(): void;
  /** Ends after the current round. */
  stop(): Promise<void>;
}

/** Only every nth failed round is logged, so that a long outage does not flood the log. */
const LOG_EVERY_FAILURES = 30;
const MAX_BACKOFF_MS = 30_000;
/** The other half of the queue is left to agents, who cannot wait as long. */
const MAX_QUEUED_BY_KEEPER = MAX_QUEUED / 2;

/** Any number of keepers can run: the once-keys ensure that each action is stored once. */
export function createKeeper({
  db,
  clock,
  deployment,
  logger,
  intervalMs,
}: {
  db: Database;
  clock: Pick<ChainClock, "now">;
  deployment: Deployment;
  logger: Pick<BaseLogger, "debug" | "info" | "warn">;
  intervalMs: number;
}): Keeper {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  const round = async (): Promise<void> => {
    for await (const due of findDue(db, { now: clock.now(), deployment })) {
      if (stopping.signal.aborted) return;
      const { operation, existing } = await enqueue(db, due, { maxQueued: MAX_QUEUED_BY_KEEPER });
      if (!existing) {
        logger.info(
          { kind: due.kind, escrow: due.escrow, operation: operation.id.toString() },
          "keeper: due",
        );
      }
    }
  };

  const run = async (): Promise<void> => {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        await round();
        failures = 0;
      } catch (error) {
        failures += 1;
        // A full queue is expected; the next round retries.
        const expected = error instanceof AppError;
        if (!expected && failures % LOG_EVERY_FAILURES === 1) {
          logger.warn({ failures, error }, "keeper: round failed");
        }
      }
      const wait = Math.max(intervalMs, Math.min(intervalMs * 2 ** Math.min(failures, 6), MAX_BACKOFF_MS));
      await delay(wait, undefined, { signal: stopping.signal }).catch(() => undefined);
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
