/** A chain, a database and an indexer that a test can stop, kill and restart. No service, no relayer. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { createDatabase } from "../../src/db/client.js";
import { indexerCommand, startIndexer } from "../../src/indexer/supervision/indexer.js";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { startNetwork } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { BLOCK_SECONDS } from "../support/blocks.js";
import { newDatabase } from "../support/database.js";
import { localClients } from "../support/test-chain.js";

export type IndexerNetwork = Awaited<ReturnType<typeof startIndexerNetwork>>;

/** Everything is new, and `stop` removes it. */
export async function startIndexerNetwork() {
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
    blockTime: BLOCK_SECONDS,
    instant: true,
    report,
  });
  const { databaseUrl, deployment, deploymentPath, rpcUrl, wsRpcUrl } = network;
  const { pool, db } = createDatabase(databaseUrl);
  const options = { databaseUrl, rpcUrl, wsRpcUrl, deploymentPath };
  let indexer = network.parts.indexer;

  return {
    ...localClients({ rpcUrl, chainId: deployment.chainId }),
    deployment,
    db,
    pool: pool as pg.Pool,
    /** Postgres schema behind the views. */
    schema: indexerCommand({ ...options, port: 0 }).schema,
    stopIndexer: () => indexer.stop(),
    async startIndexer(): Promise<void> {
      const logPath = join(directory, "logs", "indexer.log");
      indexer = await startIndexer({ ...options, port: await freePort(), guardian, logPath, report });
    },
    /** Kills the indexer without warning; its supervisor restarts it. */
    killIndexer(): void {
      const pid = indexer.pid();
      if (pid === undefined) throw new Error("The indexer is not running");
      process.kill(pid, "SIGKILL");
    },
    async stop(): Promise<void> {
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
