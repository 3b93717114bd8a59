/**
 * The service as it runs in production, on one machine: a database, a chain whose blocks the test makes, an indexer,
 * and separate API and relayer processes, each behind its own proxies. All are new, and `stop` removes them.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Parameters } from "@working-contracts/protocol/terms";
import pg from "pg";
import { createTestClient, type Hex, http, keccak256, parseEther, toHex } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { createChainClients, createSigningClient } from "../../../src/chain/clients.js";
import { deployProtocol } from "../../../src/chain/deploy.js";
import { writeDeployment } from "../../../src/chain/deployment.js";
import { createDatabase, migrate } from "../../../src/db/client.js";
import { startGuardian } from "../../../src/indexer/supervision/guardian.js";
import { LOCAL_CHAIN_ID, startChain } from "../../../tools/local/chain.js";
import { compileContracts } from "../../../tools/local/foundry.js";
import { startIndexer } from "../../../tools/local/indexer.js";
import { localAccount } from "../../../tools/local/network.js";
import { startPostgres } from "../../../tools/local/postgres.js";
import { until } from "../../../tools/local/processes.js";
import { createBlockProducer } from "../../support/blocks.js";
import { bundled } from "../../support/programs.js";
import { installGates } from "./gate.js";
import { ownPort } from "./own-port.js";
import { type RpcRule, startRpcProxy } from "./rpc-proxy.js";
import { prepareProcess, type ServiceProcess } from "./service-process.js";

export type Cluster = Awaited<ReturnType<typeof startCluster>>;

/**
 * The fate of the transactions of removed blocks: they are dropped, also from every pool; they are kept in another
 * new block; or their order changes, except among those of one sender.
 */
export const FATES = ["dropped", "kept", "reordered"] as const;
export type Fate = (typeof FATES)[number];

export interface ClusterOptions {
  /** Settings of every process, by environment variable. */
  env?: Record<string, string>;
  parameters?: Partial<Parameters>;
}

const SIGNERS = 3;
const BLOCK_INTERVAL_MS = 250;
const ENVIRONMENT = {
  // As processes behind one load balancer: quotes and receipts name it.
  BASE_URL: "http://127.0.0.1:3000",
  MASTER_KEY: "22".repeat(32),
  LOG_LEVEL: "info",
  CONFIRMATIONS: "3",
  // Short: after this time a client must repeat its call.
  SETTLEMENT_WAIT_MS: "4000",
  READY_MAX_HEAD_AGE: "100000",
  RATE_LIMIT_READS: "0",
  RATE_LIMIT_WRITES: "0",
  RATE_LIMIT_ANONYMOUS: "0",
  RATE_LIMIT_CHALLENGES: "0",
};

export async function startCluster({ env = {}, parameters }: ClusterOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), "faults-"));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  const log = (name: string) => join(dir, "logs", `${name}.log`);
  mkdirSync(join(dir, "logs"));
  const reports: string[] = [];
  const guardian = startGuardian();
  const local = { guardian, report: (line: string) => void reports.push(line) };
  await compileContracts(() => {});
  const [node, postgres, script] = await Promise.all([
    startChain({
      ...local,
      dir: join(dir, "chain"),
      port: await ownPort(),
      logPath: log("chain"),
      // Anvil's own blocks, until `blocks` makes them: with shorter pauses it would keep 1,500 copies of its state.
      blockTime: 3,
      instant: true,
      persistent: false,
    }),
    startPostgres({
      ...local,
      dir: join(dir, "postgres"),
      fallbackDir: join(dir, "postgres-fallback"),
      port: await ownPort(),
      password: "password",
      database: "faults",
      logPath: log("postgres"),
    }),
    bundled("src/commands/serve.ts"),
  ]);
  const { publicClient, chain } = createChainClients({ rpcUrl: node.rpcUrl, chainId: LOCAL_CHAIN_ID });
  const testClient = createTestClient({ chain, mode: "anvil", transport: http(node.rpcUrl) });
  const ownerAccount = localAccount(0);
  const owner = createSigningClient({ rpcUrl: node.rpcUrl, chain, account: ownerAccount });
  const signers = Array.from({ length: SIGNERS }, (_, index) => accountOf(`fault signer ${index}`));
  for (const { account } of signers) {
    await testClient.setBalance({ address: account.address, value: parseEther("100") });
  }
  const deployment = await deployProtocol({
    walletClient: owner,
    publicClient,
    owner: ownerAccount.address,
    treasury: localAccount(9).address,
    reviewer: localAccount(8).address,
    signers: signers.map(({ account }) => account.address),
    domain: "faults.test",
    grantDelay: 0,
    parameters,
  });
  const deploymentPath = join(dir, "deployment.json");
  writeDeployment(deploymentPath, deployment);
  const database = createDatabase(postgres.url, { maxConnections: 1 });
  await migrate(database.pool);
  await database.pool.end();
  const gates = await installGates(postgres.url);

  await testClient.setIntervalMining({ interval: 0 });
  const blocks = createBlockProducer(() => testClient.mine({ blocks: 1 }), BLOCK_INTERVAL_MS);
  const indexerRpc = await startRpcProxy(node.rpcUrl);
  const indexer = await startIndexer({
    ...local,
    databaseUrl: postgres.url,
    rpcUrl: indexerRpc.url,
    deploymentPath,
    port: await ownPort(),
    logPath: log("indexer"),
  });

  const process_ = (name: string, more: Record<string, string>): Promise<ServiceProcess> =>
    prepareProcess({
      name,
      databaseUrl: postgres.url,
      rpcUrl: node.rpcUrl,
      guardian,
      script,
      logPath: log(name),
      env: { ...ENVIRONMENT, DEPLOYMENT: deploymentPath, ...env, ...more },
    });
  const newestTransactions = async (depth: number): Promise<TakenTransaction[]> => {
    const head = await publicClient.getBlockNumber({ cacheTime: 0 });
    const taken: TakenTransaction[] = [];
    for (let index = 0; index < depth; index++) {
      const blockNumber = head - BigInt(depth - 1 - index);
      const { transactions } = await publicClient.getBlock({ blockNumber, includeTransactions: true });
      for (const { hash, from } of transactions) {
        const raw = await testClient.request({
          method: "eth_getRawTransactionByHash",
          params: [hash],
        } as never);
        taken.push({ raw, from, index });
      }
    }
    return taken;
  };
  const keys = signers.map(({ key }) => key).join(",");
  const apis = await Promise.all(["api-1", "api-2"].map((name) => process_(name, { ROLES: "api" })));
  // Each can use any signer: a lock decides who owns one, and another process takes it over.
  const relayers = await Promise.all(
    ["relayer-1", "relayer-2"].map((name) =>
      process_(name, { ROLES: "relayer,worker", RELAYER_PRIVATE_KEYS: keys }),
    ),
  );
  const all = [...apis, ...relayers];
  await Promise.all(all.map((one) => one.start()));

  const callAs =
    (sender: typeof owner) =>
    async (call: { to: Hex; data: Hex }): Promise<void> => {
      const hash = await sender.sendTransaction({ ...call, maxPriorityFeePerGas: 10n ** 10n });
      const { status } = await publicClient.waitForTransactionReceipt({ hash, pollingInterval: 50 });
      if (status !== "success") throw new Error(`the call ${hash} reverted`);
    };
  const pool = new pg.Pool({ connectionString: postgres.url, max: 4, application_name: "fault-test" });
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("error", () => {});
  const cluster = {
    dir,
    apis,
    relayers,
    processes: all,
    postgres,
    node,
    indexerRpc,
    indexer,
    gates,
    blocks,
    pool,
    publicClient,
    testClient,
    owner,
    deployment,
    signers: signers.map(({ account }) => account),
    /** Messages of the supervisors: restarts and their reasons. */
    reports,
    chainTime: async (): Promise<number> => Number((await publicClient.getBlock()).timestamp),
    /** The process from whose proxy a database backend is connected. */
    processAt: (port: number): ServiceProcess => {
      const found = all.find(({ database: proxy }) => proxy.hasPort(port));
      if (found === undefined) throw new Error(`No process is connected from port ${port}`);
      return found;
    },
    /** Sends a call as the owner of the protocol and of the test dollar. Returns when it is mined. */
    ownerCall: callAs(owner),
    /** The same as someone else. */
    strangerCall: callAs(createSigningClient({ rpcUrl: node.rpcUrl, chain, account: localAccount(7) })),
    async moveTime(seconds: number): Promise<void> {
      await testClient.increaseTime({ seconds });
      await blocks.next();
    },
    /** How often the relayers raised an alarm, by their own metrics. A killed process loses its count. */
    async alarms(name: string): Promise<number> {
      let count = 0;
      for (const { url } of relayers.filter((one) => one.isRunning())) {
        const text = await (await fetch(`${url}/metrics`)).text();
        const line = new RegExp(`^working_contracts_relayer_alarms_total\\{name="${name}"\\} (\\d+)`, "m");
        count += Number(line.exec(text)?.[1] ?? 0);
      }
      return count;
    },
    /** Applies this rule to the node calls of every relayer and API process. Null lets all calls through. */
    setRules(rule: RpcRule | null): void {
      for (const one of all) one.rpc.setRule(rule);
    },
    /** Replaces the newest `depth` blocks by as many others. No block may be made meanwhile. */
    async reorganize(depth: number, fate: Fate = "dropped"): Promise<void> {
      const taken = fate === "dropped" ? [] : await newestTransactions(depth);
      await testClient.request({
        method: "anvil_reorg",
        params: [depth, inNewBlocks(taken, depth, fate)],
      } as never);
    },
    /** Resumes everything: all processes run, no rule or gate is active, blocks are made. */
    async heal(): Promise<void> {
      for (const one of all) {
        one.rpc.setRule(null);
        await one.rpc.refuse(false);
        await one.database.setMode("pass");
        one.thaw();
      }
      indexerRpc.setRule(null);
      await indexerRpc.refuse(false);
      await gates.stop();
      blocks.resume();
      await until("Postgres answers", async () => (await pool.query("select 1")).rowCount === 1, {
        timeoutMs: 60_000,
      });
      await Promise.all(all.map((one) => one.start()));
    },
    async stop(): Promise<void> {
      await gates.stop();
      await Promise.all(all.map((one) => one.stop()));
      await blocks.pause();
      await pool.end();
      await indexer.stop();
      await indexerRpc.stop();
      await postgres.stop();
      await node.stop();
      await guardian.stop();
      if (process.env.KEEP_LOGS === undefined) return rmSync(dir, { recursive: true, force: true });
      writeFileSync(log("supervisor"), reports.join("\n"));
      console.log(`Logs kept in ${join(dir, "logs")}`);
    },
  };
  return cluster;
}

interface TakenTransaction {
  raw: Hex;
  from: Hex;
  /** Index of its block, counted from the oldest removed one. */
  index: number;
}

/** The format of anvil_reorg: bytes, and the index of the new block. */
function inNewBlocks(taken: TakenTransaction[], depth: number, fate: Fate): [Hex, number][] {
  if (fate === "kept") return taken.map(({ raw, index }) => [raw, Math.min(index + 1, depth - 1)]);
  const senders = [...new Set(taken.map(({ from }) => from))].reverse();
  const reordered = senders.flatMap((sender) => taken.filter(({ from }) => from === sender));
  return reordered.map(({ raw }, place) => [raw, Math.floor((place * depth) / reordered.length)]);
}

/** The same words give the same account. */
export function accountOf(words: string): { key: Hex; account: PrivateKeyAccount } {
  const key = keccak256(toHex(words));
  return { key, account: privateKeyToAccount(key) };
}
