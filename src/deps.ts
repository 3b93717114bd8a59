/** Dependencies of features. main.ts or a test builds them; createApp adds the last ones. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Logger } from "pino";
import type { PublicClient } from "viem";
import type { ChainClock } from "./chain/clients.js";
import type { Config } from "./config.js";
import type { Database } from "./db/client.js";
import type { EventFeed } from "./events/log.js";
import type { CheckpointTrees } from "./features/checkpoints/checkpoint-trees.js";
import type { EventStreams } from "./features/events/stream-events.js";
import type { ParameterReader } from "./features/protocol/routes.js";
import type { KeyOwners } from "./http/key-owners.js";
import type { Metrics } from "./metrics.js";
import type { OutboxWaiter } from "./relayer/outbox.js";
import type { ConcurrencyLimit } from "./scheduling.js";

export interface Deps {
  config: Config;
  db: Database;
  /** A separate pool for lists and other slow queries: see {@link reading}. */
  readDb: Database;
  publicClient: PublicClient;
  clock: ChainClock;
  deployment: Deployment;
  keys: KeyOwners;
  outbox: OutboxWaiter;
  feed: EventFeed;
  checkpointTrees: CheckpointTrees;
  /** Made by createApp: the API and the pages share its limit. */
  streams: EventStreams;
  /** Made by createApp: parameters of future contracts, at most a few seconds old. */
  readParameters: ParameterReader;
  /** Made by createApp: quotes take turns, so that payments, which can miss the next block, get ahead of them. */
  inQuoteTurn: ConcurrencyLimit;
  logger: Logger;
  /** If absent, as in tests, there is no /metrics. */
  metrics?: Metrics | undefined;
}

/** Returns `deps` with the pool for slow reads, so that many slow reads cannot use up the connections for payments. */
export function reading<D extends Pick<Deps, "db" | "readDb">>(deps: D): D {
  return { ...deps, db: deps.readDb };
}
