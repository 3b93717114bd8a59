/** A chain, a database and an indexer that a test can stop, kill and restart. No service, no relayer. */
import { join } from "node:path";
import { eq } from "drizzle-orm";
import type pg from "pg";
import type { Address } from "viem";
import { afterAll } from "vitest";
import { createDatabase } from "../../src/db/client.js";
import { escrowEvent, workingContract } from "../../src/db/onchain.js";
import { indexerCommand } from "../../src/indexer/supervision/indexer.js";
import { startIndexer } from "../../tools/local/indexer.js";
import { freePort } from "../../tools/local/ports.js";
import { newDatabase } from "../support/database.js";
import { startTestNetwork } from "../support/network.js";
import { localClients, type Wallet } from "../support/test-chain.js";

export const addressOf = (wallet: Wallet) => wallet.account.address.toLowerCase() as Address;

export type IndexerNetwork = Awaited<ReturnType<typeof useIndexerNetwork>>;

/** Of one test file: everything is new, and goes with it. */
export async function useIndexerNetwork() {
  const database = await newDatabase();
  const name = "indexer-test-";
  const { network, guardian, logs, stop } = await startTestNetwork({ name, databaseUrl: database.url });
  const { databaseUrl, deployment, deploymentPath, rpcUrl, wsRpcUrl } = network;
  const { pool, db } = createDatabase(databaseUrl);
  const options = { databaseUrl, rpcUrl, wsRpcUrl, deploymentPath };
  let indexer = network.parts.indexer;
  afterAll(async () => {
    await indexer.stop();
    await pool.end();
    await stop();
    await database.drop();
  });

  return {
    ...localClients({ rpcUrl, chainId: deployment.chainId }),
    deployment,
    db,
    pool: pool as pg.Pool,
    /** Postgres schema behind the views. */
    schema: indexerCommand({ ...options, port: 0 }).schema,
    /** The indexed row. */
    rowOf: async (escrow: Address) => {
      const [row] = await db.select().from(workingContract).where(eq(workingContract.id, escrow));
      return row;
    },
    /** The indexed events, in order. */
    eventsOf: (escrow: Address) =>
      db.select().from(escrowEvent).where(eq(escrowEvent.contractId, escrow)).orderBy(escrowEvent.id),
    stopIndexer: () => indexer.stop(),
    async startIndexer(): Promise<void> {
      const logPath = join(logs, "indexer.log");
      const port = await freePort();
      indexer = await startIndexer({ ...options, port, guardian, logPath, report: () => {} });
    },
    /** Kills the indexer without warning; its supervisor restarts it. */
    killIndexer(): void {
      const pid = indexer.pid();
      if (pid === undefined) throw new Error("The indexer is not running");
      process.kill(pid, "SIGKILL");
    },
  };
}
