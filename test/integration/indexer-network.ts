/** A chain, a database and an indexer that a test can stop, kill and restart. No service, no relayer. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type pg from "pg";
import {
  type Account,
  type Chain,
  createTestClient,
  createWalletClient,
  http,
  type PublicClient,
  type TestClient,
  type Transport,
  type WalletClient,
} from "viem";
import { createChainClients } from "../../src/chain/clients.js";
import { createDatabase, type Database } from "../../src/db/client.js";
import { indexerCommand, startIndexer } from "../../src/indexer/supervision/indexer.js";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { localAccount, startNetwork } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { newDatabase } from "../support/database.js";

export type Wallet = WalletClient<Transport, Chain, Account>;

export interface IndexerNetwork {
  publicClient: PublicClient<Transport, Chain>;
  testClient: TestClient<"anvil", Transport, Chain>;
  /** Funded accounts; the first one is the protocol's owner. */
  wallet(index: number): Wallet;
  deployment: Deployment;
  db: Database;
  pool: pg.Pool;
  /** Postgres schema behind the views. */
  schema: string;
  stopIndexer(): Promise<void>;
  startIndexer(): Promise<void>;
  /** Kills the indexer without warning; its supervisor restarts it. */
  killIndexer(): void;
  stop(): Promise<void>;
}

/**
 * How long tests wait for the indexer. If its node fails to respond, Ponder repeats the same request for a minute
 * before it continues.
 */
export const INDEXING_MS = 90_000;
/** A slow request must not be retried: a block would be made twice. */
const RPC_TIMEOUT_MS = 60_000;

/** Everything is new, and `stop` removes it. */
export async function startIndexerNetwork(): Promise<IndexerNetwork> {
  const directory = mkdtempSync(join(tmpdir(), "indexer-test-"));
  const guardian = startGuardian();
  const report = () => {};
  const database = await newDatabase();
  const network = await startNetwork({
    databaseUrl: database.url,
    guardian,
    dir: directory,
    persistent: false,
    postgresPassword: "password",
    blockTime: 1,
    instant: true,
    report,
  });
  const { databaseUrl, deployment, deploymentPath, rpcUrl, wsRpcUrl } = network;
  const { pool, db } = createDatabase(databaseUrl);
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const options = { databaseUrl, rpcUrl, wsRpcUrl, deploymentPath };
  const transport = http(rpcUrl, { timeout: RPC_TIMEOUT_MS });
  let indexer = network.parts.indexer;

  return {
    publicClient,
    testClient: createTestClient({ chain, mode: "anvil", transport }),
    wallet: (index) =>
      createWalletClient({
        account: localAccount(index),
        chain,
        transport,
        pollingInterval: 50,
      }),
    deployment,
    db,
    pool,
    schema: indexerCommand({ ...options, port: 0 }).schema,
    stopIndexer: () => indexer.stop(),
    async startIndexer() {
      const logPath = join(directory, "logs", "indexer.log");
      indexer = await startIndexer({ ...options, port: await freePort(), guardian, logPath, report });
    },
    killIndexer() {
      const pid = indexer.pid();
      if (pid === undefined) throw new Error("The indexer is not running");
      process.kill(pid, "SIGKILL");
    },
    async stop() {
      await indexer.stop();
      await pool.end();
      await network.stop();
      await database.drop();
      await guardian.stop();
      if (process.env.KEEP_LOGS === undefined) rmSync(directory, { recursive: true, force: true });
      else console.log(`Logs kept in ${join(directory, "logs")}`);
    },
  };
}

/** Waits until `condition` holds; throws after `timeoutMs`. */
export async function until(condition: () => Promise<boolean>, timeoutMs = INDEXING_MS): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Condition not met within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
