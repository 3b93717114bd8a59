/** Actions of tests on a service and its chain: create and fund agents, move time, read balances. */
import { setTimeout as delay } from "node:timers/promises";
import { protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import pg from "pg";
import {
  type Address,
  type Chain,
  createPublicClient,
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  type PublicClient,
  parseEther,
  parseUnits,
  type TestClient,
  type Transport,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, inject } from "vitest";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { readDeployment } from "../../src/chain/deployment.js";
import { type Database, databaseOn } from "../../src/db/client.js";
import { createConcurrencyLimit } from "../../src/scheduling.js";
import { localAccount } from "../../tools/local/network.js";
import { until } from "../../tools/local/processes.js";
import { type Agent, type Call, caller, signIn } from "./agent.js";
import { advanceClock, followChainTime, serviceReaches } from "./chain-time.js";
import { draft } from "./contracts.js";
import { quoteOf } from "./payment.js";
import type { StackInfo } from "./stack.js";

/** Deployer and owner on a local chain. Derived once: that takes 20 ms. */
export const OWNER = localAccount(0);

declare module "vitest" {
  export interface ProvidedContext {
    /** Of the project `conformance`. */
    target: Target;
  }
}

/** A service under test, and the access to it besides HTTP. */
export interface Target {
  url: string;
  /** Node of its chain. */
  rpcUrl: string | null;
  /** Holds stablecoins, and native currency for gas, to fund agents on a chain that is not a test chain. */
  funderKey: Hex | null;
  databaseUrl: string | null;
  /** The suite's own stack, or null if it tests a given service. */
  stack: StackInfo | null;
  can: Ability[];
}

/** `money`: agents with stablecoins. `tokens`: and with protocol tokens. `clock`: moving the chain's time. */
export type Ability = "money" | "tokens" | "clock" | "database" | "stack";

/** Actions on any target. */
export interface Scene {
  target: Target;
  url: string;
  chainId: number;
  /** Calls without a key. */
  call: Call;
  /** The service's time in seconds. */
  now(): Promise<number>;
  /** The time so many seconds after the service's now, in the API's format. */
  inSeconds(seconds: number): Promise<string>;
  /** A new agent that has signed in, with dollars ("50.0") and whole protocol tokens if given. */
  newAgent(options?: {
    usd?: string | undefined;
    tokens?: number | undefined;
    /** As of `signIn`. */
    permission?: Record<string, unknown> | undefined;
  }): Promise<Agent>;
  /** Gives test dollars, for example "50.0". */
  fundUsd(address: Address, amount: string): Promise<void>;
  usdOf(address: Address): Promise<bigint>;
  /** Grants whole protocol tokens. */
  grantTokens(address: Address, amount: number): Promise<void>;
  /** Moves the chain's time and this process's clock, by which payment clients sign. */
  moveTime(seconds: number): Promise<void>;
  query<T extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<T[]>;
}

/** A scene on a stack of the suite's own. */
export interface World extends Scene {
  info: StackInfo;
  deployment: Deployment;
  publicClient: PublicClient<Transport, Chain>;
  testClient: TestClient<"anvil", Transport, Chain>;
  pool: pg.Pool;
  db: Database;
  /** Chain time of the newest block, in seconds. */
  chainNow(): Promise<number>;
  /** Moves the time, and resolves once indexer and service have followed. */
  increaseTime(seconds: number): Promise<void>;
  /** Resolves once the indexer has reached the newest block. */
  indexed(): Promise<void>;
  close(): Promise<void>;
}

/** The stack that global-setup.ts started for this project. */
export function sharedStack(): StackInfo {
  return inject("stack");
}

/** The whole stack as a target. */
export function ownTarget(stack: StackInfo): Target {
  const { url, rpcUrl, databaseUrl } = stack;
  return {
    url,
    rpcUrl,
    databaseUrl,
    funderKey: null,
    stack,
    can: ["money", "tokens", "clock", "database", "stack"],
  };
}

/** The scene of one test file. */
export async function openScene(target: Target = inject("target")): Promise<Scene> {
  const call = caller(target.url);
  const chainId = await chainIdOf(call);
  // Waits for a slow node, because a retried transaction would be a second one.
  const transport = http(target.rpcUrl ?? "http://localhost", { batch: true, timeout: 60_000 });
  const publicClient = createPublicClient({ transport, pollingInterval: 100 });
  const followsChain = target.can.includes("clock");
  const chainNow = async (): Promise<number> => Number((await publicClient.getBlock()).timestamp);
  const now = async (): Promise<number> => (followsChain ? chainNow() : Math.floor(Date.now() / 1000));
  if (followsChain) await followChainTime(chainNow);

  /** The node signs for its own first account, and responds with the receipt. */
  const inOwnersTurn = createConcurrencyLimit(1);
  const asOwner = async (to: Address, data: Hex): Promise<void> => {
    const params = [{ from: OWNER.address, to, data }] as never;
    const method = "eth_sendTransactionSync" as never;
    const { transactionHash, status } = (await inOwnersTurn(() =>
      publicClient.request({ method, params }),
    )) as { transactionHash: Hex; status: Hex };
    if (status !== "0x1") throw new Error(`The suite's transaction ${transactionHash} reverted.`);
  };
  /** Stablecoin and protocol token: of the deployment, or read from the quotes of an agent that never pays. */
  const assets = lazy(async () => {
    if (target.stack !== null) {
      const { asset, protocolToken } = readDeployment(target.stack.deploymentPath);
      return { usd: asset.address, token: protocolToken };
    }
    const agent = await signIn({ url: target.url, chainId });
    const [price, stake] = await Promise.all([
      agent.post("/v1/contracts", await draft(scene)),
      agent.post("/v1/agents/me/stake", {}),
    ]);
    return { usd: quoteOf(price).asset, token: quoteOf(stake).asset };
  });
  const inFundersTurn = createConcurrencyLimit(1);
  const asFunder = (asset: Address, to: Address, value: bigint): Promise<void> => {
    const rpcUrl = target.rpcUrl as string;
    const nativeCurrency = { name: "", symbol: "", decimals: 18 };
    const rpcUrls = { default: { http: [rpcUrl] } };
    const chain = { id: chainId, name: "target", nativeCurrency, rpcUrls };
    const client = createSigningClient({
      rpcUrl,
      chain,
      account: privateKeyToAccount(target.funderKey as Hex),
    });
    const transfer = {
      address: asset,
      abi: testUsdAbi,
      functionName: "transfer",
      args: [to, value],
    } as const;
    return inFundersTurn(async () => {
      const hash = await client.writeContract(transfer);
      const { status } = await publicClient.waitForTransactionReceipt({ hash });
      if (status !== "success") throw new Error(`The suite's transaction ${hash} reverted.`);
    });
  };
  const pool = lazy(async () => new pg.Pool({ connectionString: target.databaseUrl ?? undefined, max: 4 }));

  const scene: Scene = {
    target,
    url: target.url,
    chainId,
    call,
    now,
    inSeconds: async (seconds) => new Date(((await now()) + seconds) * 1000).toISOString(),
    async newAgent({ usd, tokens, permission } = {}) {
      const agent = await signIn({ url: target.url, chainId, permission });
      await Promise.all([
        usd === undefined ? undefined : scene.fundUsd(agent.address, usd),
        tokens === undefined ? undefined : scene.grantTokens(agent.address, tokens),
      ]);
      return agent;
    },
    async fundUsd(address, amount) {
      const { usd } = await assets();
      const value = parseUnits(amount, 6);
      if (!followsChain) return asFunder(usd, address, value);
      await asOwner(
        usd,
        encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [address, value] }),
      );
    },
    usdOf: async (address) =>
      publicClient.readContract({
        address: (await assets()).usd,
        abi: testUsdAbi,
        functionName: "balanceOf",
        args: [address],
      }),
    async grantTokens(address, amount) {
      const args = [address, parseEther(String(amount))] as const;
      const data = encodeFunctionData({ abi: protocolTokenAbi, functionName: "grant", args });
      await asOwner((await assets()).token, data);
    },
    async moveTime(seconds) {
      const testClient = createTestClient({ mode: "anvil", transport });
      advanceClock(seconds);
      await testClient.increaseTime({ seconds });
      await testClient.mine({ blocks: 1 });
      await followChainTime(chainNow);
      await serviceReaches(target.url, await chainNow());
    },
    async query(sql, values) {
      return (await (await pool()).query(sql, values)).rows;
    },
  };
  return scene;
}

/** The world of one test file, which closes with it. */
export async function useWorld(info?: StackInfo): Promise<World> {
  const world = await openWorld(info);
  afterAll(() => world.close());
  return world;
}

/** Opens a stack; the caller must close it. */
export async function openWorld(info: StackInfo = sharedStack()): Promise<World> {
  const scene = await openScene(ownTarget(info));
  const deployment = readDeployment(info.deploymentPath);
  const { publicClient, chain } = createChainClients({ rpcUrl: info.rpcUrl, chainId: deployment.chainId });
  // A slow request must not be retried: time would be moved twice.
  const transport = http(info.rpcUrl, { timeout: 60_000 });
  const pool = new pg.Pool({ connectionString: info.databaseUrl, max: 4 });
  pool.on("error", () => {});
  const indexed = async (): Promise<void> => {
    const target = await publicClient.getBlockNumber({ cacheTime: 0 });
    const hasReached = async (): Promise<boolean> => {
      const status = (await (await fetch(`${info.indexerUrl}/status`)).json()) as IndexerStatus;
      return Object.values(status).every(({ block }) => BigInt(block.number) >= target);
    };
    await until(`the indexer reaches block ${target}`, hasReached, { timeoutMs: 90_000 });
  };
  return {
    ...scene,
    info,
    deployment,
    publicClient,
    testClient: createTestClient({ mode: "anvil", chain, transport }),
    pool,
    db: databaseOn(pool),
    query: async (sql, values) => (await pool.query(sql, values)).rows,
    chainNow: scene.now,
    async increaseTime(seconds) {
      await scene.moveTime(seconds);
      await indexed();
      // Behind a load balancer, only one process has shown its clock.
      await delay(info.clockLagMs ?? 0);
    },
    indexed,
    close: () => pool.end(),
  };
}

/** A value shared by several tests of a file, created when the first of them needs it. */
export function lazy<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

type IndexerStatus = Record<string, { block: { number: number } }>;

/** Reads the chain id from a challenge. */
async function chainIdOf(call: Call): Promise<number> {
  const challenge = await call<{ message: string }>("POST", `/v1/agents/0x${"01".repeat(20)}/challenge`);
  const [, id] = /Chain ID: (\d+)/.exec(challenge.data?.message ?? "") ?? [];
  if (id === undefined) throw new Error(`No chain id in the challenge: ${JSON.stringify(challenge.body)}`);
  return Number(id);
}
