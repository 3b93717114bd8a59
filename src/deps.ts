/** What services and routes are built from; only main.ts and the tests build one. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import type { ChainClock } from "./chain/clock.js";
import type { Config } from "./config.js";
import type { Database } from "./db/client.js";
import type { EventFeed } from "./events/feed.js";
import type { CheckpointTrees } from "./features/checkpoints/checkpoint-trees.js";
import type { Metrics } from "./metrics.js";
import type { OutboxWaiter } from "./relayer/outbox-waiter.js";

export interface Deps {
  config: Config;
  db: Database;
  /** Connections of their own for lists and whatever else may take long: see {@link reading}. */
  readDb: Database;
  pool: Pool;
  publicClient: PublicClient;
  clock: ChainClock;
  deployment: Deployment;
  outbox: OutboxWaiter;
  feed: EventFeed;
  checkpointTrees: CheckpointTrees;
  logger: Logger;
  /** Absent where nobody watches, as in tests: then there is no /metrics. */
  metrics?: Metrics | undefined;
}

/** The same for calls that read much: however many wait for their rows, payments find a connection. */
export function reading<D extends Pick<Deps, "db" | "readDb">>(deps: D): D {
  return { ...deps, db: deps.readDb };
}
