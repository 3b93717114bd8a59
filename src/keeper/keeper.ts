/**
 * Enqueues actions that become due with time alone: settlements, draws, openings, tallies, claims, unbonded stakes. A
 * convenience: statuses are correct without it, and anyone may make the same calls.
 */
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { BaseLogger } from "pino";
import type { ChainClock } from "../chain/clock.js";
import type { Database } from "../db/client.js";
import { AppError } from "../errors.js";
import { createLoop, type Loop } from "../loop.js";
import { enqueue, MAX_QUEUED } from "../relayer/outbox.js";
import { findDue } from "./due.js";

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
  logger: Pick<BaseLogger, "info" | "warn">;
  intervalMs: number;
}): Loop {
  return createLoop({
    name: "keeper",
    logger,
    intervalMs,
    maxBackoffMs: MAX_BACKOFF_MS,
    // A full queue: the next round retries.
    isExpected: (error) => error instanceof AppError,
    async round(stopping) {
      for await (const due of findDue(db, { now: clock.now(), deployment })) {
        if (stopping.aborted) return;
        const { operation, existing } = await enqueue(db, due, { maxQueued: MAX_QUEUED_BY_KEEPER });
        if (existing) continue;
        const { kind, escrow } = due;
        logger.info({ kind, escrow, operation: operation.id.toString() }, "keeper: due");
      }
    },
  });
}
