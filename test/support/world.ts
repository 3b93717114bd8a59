/** Actions of tests on a running stack: fund accounts, move time, read the chain, create agents. */
import { setTimeout as delay } from "node:timers/promises";
import { protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import pg from "pg";
import {
  type Address,
  type Chain,
  createTestClient,
  http,
  type PublicClient,
  parseEther,
  parseUnits,
  type TestClient,
  type Transport,
} from "viem";
import { inject } from "vitest";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { readDeployment } from "../../src/chain/deployment.js";
import { until } from "../../src/indexer/supervision/processes.js";
import { localAccount } from "../../tools/local/network.js";
import { type Agent, signIn } from "./agent.js";
import { followChainTime, serviceReaches } from "./chain-time.js";
import type { StackInfo } from "./stack.js";

export interface World {
  url: string;
  info: StackInfo;
  deployment: Deployment;
  publicClient: PublicClient<Transport, Chain>;
  testClient: TestClient<"anvil", Transport, Chain>;
  pool: pg.Pool;
  /** Mints test dollars, for example "50.0". */
  fundUsd(address: Address, amount: string): Promise<void>;
  usdOf(address: Address): Promise<bigint>;
  /** Grants whole protocol tokens. */
  grantTokens(address: Address, amount: number): Promise<void>;
  /** Chain time of the newest block, in seconds. */
  chainNow(): Promise<number>;
  /** The time so many seconds after the chain's now, in the API's format. */
  inSeconds(seconds: number): Promise<string>;
  /** Moves the chain's time and this process's clock, by which payment clients sign. */
  increaseTime(seconds: number): Promise<void>;
  /** Resolves once the indexer has reached the newest block. */
  indexed(): Promise<void>;
  /** A new agent that has signed in, with test dollars if `usd` is given. */
  newAgent(options?: { usd?: string }): Promise<Agent>;
  close(): Promise<void>;
}

/** The stack that global-setup.ts started for this project. */
export function sharedStack(): StackInfo {
  return inject("stack");
}

/** Opens a stack for a test file; close it in afterAll. */
export async function openWorld(info: StackInfo = sharedStack()): Promise<World> {
  const deployment = readDeployment(info.deploymentPath);
  const { publicClient, chain } = createChainClients({ rpcUrl: info.rpcUrl, chainId: deployment.chainId });
  // A slow request must not be retried: time would be moved twice.
  const transport = http(info.rpcUrl, { timeout: 60_000 });
  const testClient = createTestClient({ mode: "anvil", chain, transport });
  const pool = new pg.Pool({ connectionString: info.databaseUrl, max: 4 });
  pool.on("error", () => {});
  const owner = createSigningClient({ rpcUrl: info.rpcUrl, chain, account: localAccount(0) });
  // Test files run one after another, but calls within a file can run concurrently. Sending in turn keeps the nonces in
  // order.
  let sending: Promise<unknown> = Promise.resolve();
  const inTurn = (send: () => Promise<`0x${string}`>): Promise<void> => {
    const turn = sending.then(async () => {
      const hash = await send();
      const { status } = await publicClient.waitForTransactionReceipt({ hash });
      if (status !== "success") throw new Error(`The test's transaction ${hash} reverted.`);
    });
    sending = turn.catch(() => {});
    return turn;
  };

  const chainNow = async (): Promise<number> => Number((await publicClient.getBlock()).timestamp);
  await followChainTime(chainNow);
  const usd = { address: deployment.asset.address, abi: testUsdAbi } as const;

  const world: World = {
    url: info.url,
    info,
    deployment,
    publicClient,
    testClient,
    pool,
    fundUsd: (address, amount) =>
      inTurn(() =>
        owner.writeContract({ ...usd, functionName: "mint", args: [address, parseUnits(amount, 6)] }),
      ),
    usdOf: (address) => publicClient.readContract({ ...usd, functionName: "balanceOf", args: [address] }),
    grantTokens: (address, amount) =>
      inTurn(() =>
        owner.writeContract({
          address: deployment.protocolToken,
          abi: protocolTokenAbi,
          functionName: "grant",
          args: [address, parseEther(String(amount))],
        }),
      ),
    chainNow,
    inSeconds: async (seconds) => new Date(((await chainNow()) + seconds) * 1000).toISOString(),
    async increaseTime(seconds) {
      await testClient.increaseTime({ seconds });
      await testClient.mine({ blocks: 1 });
      await followChainTime(chainNow);
      await world.indexed();
      await serviceReaches(info.url, await chainNow());
      // Behind a load balancer, only one process has shown its clock.
      await delay(info.clockLagMs ?? 0);
    },
    async indexed() {
      const target = await publicClient.getBlockNumber({ cacheTime: 0 });
      const hasReached = async (): Promise<boolean> => {
        const status = (await (await fetch(`${info.indexerUrl}/status`)).json()) as IndexerStatus;
        return Object.values(status).every(({ block }) => BigInt(block.number) >= target);
      };
      await until(`the indexer reaches block ${target}`, hasReached, { timeoutMs: 90_000 });
    },
    async newAgent({ usd: amount } = {}) {
      const agent = await signIn({ url: info.url, chainId: deployment.chainId });
      if (amount !== undefined) await world.fundUsd(agent.address, amount);
      return agent;
    },
    async close() {
      await pool.end();
    },
  };
  return world;
}

type IndexerStatus = Record<string, { block: { number: number } }>;
