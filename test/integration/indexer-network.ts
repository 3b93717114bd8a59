/** A chain, a database and an indexer that a test may stop, break and start again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
import { mnemonicToAccount } from "viem/accounts";
import { createChainClients } from "../../src/chain/clients.js";
import { deployProtocol } from "../../src/chain/deploy.js";
import { type Deployment, writeDeployment } from "../../src/chain/deployment.js";
import { createDatabase, type Database } from "../../src/db/client.js";
import { LOCAL_CHAIN_ID, MNEMONIC, startChain } from "../../src/local/chain.js";
import { indexerCommand, unlockIndexer } from "../../src/local/indexer-process.js";
import { freePort } from "../../src/local/ports.js";
import { startPostgres } from "../../src/local/postgres.js";
import { startGuardian } from "../../src/local/processes.js";

export type Wallet = WalletClient<Transport, Chain, Account>;

export interface IndexerNetwork {
  publicClient: PublicClient<Transport, Chain>;
  testClient: TestClient<"anvil", Transport, Chain>;
  /** Funded accounts; the first one is the protocol's owner. */
  wallet(index: number): Wallet;
  deployment: Deployment;
  db: Database;
  pool: pg.Pool;
  startIndexer(): Promise<Indexer>;
  stop(): Promise<void>;
}

export interface Indexer {
  schema: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Everything is new, and gone after `stop`. */
export async function startIndexerNetwork(): Promise<IndexerNetwork> {
  const directory = mkdtempSync(join(tmpdir(), "indexer-test-"));
  // Postgres runs as another user where the tests run as root.
  chmodSync(directory, 0o755);
  const guardian = startGuardian();
  const local = { guardian, report: () => {} };
  const [node, postgres] = await Promise.all([
    startChain({
      ...local,
      dir: join(directory, "chain"),
      port: await freePort(),
      logPath: join(directory, "chain.log"),
      blockTime: 1,
      persistent: false,
    }),
    startPostgres({
      ...local,
      dir: join(directory, "postgres"),
      fallbackDir: join(directory, "postgres-fallback"),
      port: await freePort(),
      password: "password",
      database: "indexer",
      logPath: join(directory, "postgres.log"),
      volatile: true,
    }),
  ]);
  const { rpcUrl, wsRpcUrl } = node;
  const { pool, db } = createDatabase(postgres.url);
  const children = new Set<ChildProcess>();

  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: LOCAL_CHAIN_ID });
  const wallet = (index: number): Wallet =>
    createWalletClient({
      account: mnemonicToAccount(MNEMONIC, { addressIndex: index }),
      chain,
      transport: http(rpcUrl),
      pollingInterval: 50,
    });
  const owner = wallet(0).account.address;
  const deployment = await deployProtocol({
    walletClient: wallet(0),
    publicClient,
    owner,
    treasury: wallet(15).account.address,
    reviewer: owner,
    signers: [owner],
    domain: "indexer.test",
  });
  const deploymentPath = join(directory, "deployment.json");
  writeDeployment(deploymentPath, deployment);

  return {
    publicClient,
    testClient: createTestClient({ chain, mode: "anvil", transport: http(rpcUrl) }),
    wallet,
    deployment,
    db,
    pool,
    async startIndexer() {
      const port = await freePort();
      const databaseUrl = postgres.url;
      const { command, args, env, schema } = indexerCommand({
        databaseUrl,
        rpcUrl,
        wsRpcUrl,
        deploymentPath,
        port,
      });
      const child = spawn(command, args, {
        env: env as NodeJS.ProcessEnv,
        stdio: ["ignore", "inherit", "inherit"],
      });
      children.add(child);
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`The indexer ended with code ${child.exitCode}`);
        return fetch(`http://127.0.0.1:${port}/ready`).then(
          (response) => response.ok,
          () => false,
        );
      });
      return {
        schema,
        async stop(signal = "SIGTERM") {
          await end(child, signal);
          if (signal === "SIGKILL") await unlockIndexer({ databaseUrl, schema });
          children.delete(child);
        },
      };
    },
    async stop() {
      await pool.end();
      await Promise.all([...children].map((child) => end(child, "SIGKILL")));
      await postgres.stop();
      await node.stop();
      await guardian.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

/** Waits until `condition` holds; fails after half a minute. */
export async function until(condition: () => Promise<boolean>, timeoutMs = 30_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Condition not met within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
