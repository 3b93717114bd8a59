/** Actions of the chapters on their target: create agents, fund them, read and move the time. */

import { protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import pg from "pg";
import {
  type Address,
  createPublicClient,
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  parseEther,
  parseUnits,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { inject } from "vitest";
import { createSigningClient } from "../../../src/chain/clients.js";
import { localAccount } from "../../../tools/local/network.js";
import { type Agent, signIn } from "../../support/agent.js";
import { followChainTime, serviceReaches } from "../../support/chain-time.js";
import { type Quote, quoteOf } from "../../support/payment.js";
import { type Call, caller } from "./call.js";
import { lazy } from "./spec.js";
import type { Target } from "./target.js";

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
  newAgent(options?: { usd?: string; tokens?: number }): Promise<Agent>;
  usdOf(address: Address): Promise<bigint>;
  /** Moves the chain's time and this process's clock, by which payment clients sign. */
  moveTime(seconds: number): Promise<void>;
  query<T extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<T[]>;
}

/** The scene of one test file. */
export async function openScene(): Promise<Scene> {
  const target = inject("target");
  const call = caller(target.url);
  const chainId = await chainIdOf(call);
  // Waits for a slow node, because a retried transaction would be a second one.
  const transport = http(target.rpcUrl ?? "http://localhost", { batch: true, timeout: 60_000 });
  const publicClient = createPublicClient({ transport, pollingInterval: 100 });
  const chain = { id: chainId, name: "target", nativeCurrency: { name: "", symbol: "", decimals: 18 } };
  const owner = localAccount(0).address;
  const followsChain = target.can.includes("clock");

  const chainNow = async (): Promise<number> => Number((await publicClient.getBlock()).timestamp);
  const now = async (): Promise<number> => (followsChain ? chainNow() : Math.floor(Date.now() / 1000));
  if (followsChain) await followChainTime(chainNow);

  /** The node signs for its own first account. Transactions are sent one after another; a block can mine any number. */
  let sending: Promise<unknown> = Promise.resolve();
  const asOwner = async (to: Address, data: Hex): Promise<void> => {
    const params = [{ from: owner, to, data }] as never;
    const sent = sending.then(() =>
      publicClient.request({ method: "eth_sendTransaction" as never, params }),
    ) as Promise<Hex>;
    sending = sent.catch(() => {});
    const hash = await sent;
    const { status } = await publicClient.waitForTransactionReceipt({ hash });
    if (status !== "success") throw new Error(`The suite's transaction ${hash} reverted.`);
  };
  /** Stablecoin and protocol token, read from the quotes of an agent that never pays. */
  const assets = lazy(async () => {
    const agent = await signIn({ url: target.url, chainId });
    const [price, stake] = await Promise.all([
      agent.post("/v1/contracts", probeBody(await now())),
      agent.post("/v1/agents/me/stake", {}),
    ]);
    return { usd: (quoteOf(price) as Quote).asset, token: (quoteOf(stake) as Quote).asset };
  });
  let paying: Promise<unknown> = Promise.resolve();
  const asFunder = (asset: Address, to: Address, value: bigint): Promise<void> => {
    const account = privateKeyToAccount(target.funderKey as Hex);
    const rpcUrl = target.rpcUrl as string;
    const turn = paying.then(async () => {
      const client = createSigningClient({ rpcUrl, chain: { ...chain, rpcUrls: rpc(rpcUrl) }, account });
      const transfer = {
        address: asset,
        abi: testUsdAbi,
        functionName: "transfer",
        args: [to, value],
      } as const;
      const hash = await client.writeContract(transfer);
      await publicClient.waitForTransactionReceipt({ hash });
    });
    paying = turn.catch(() => {});
    return turn;
  };
  const fund = async (to: Address, amount: string): Promise<void> => {
    const { usd } = await assets();
    const value = parseUnits(amount, 6);
    if (!followsChain) return asFunder(usd, to, value);
    await asOwner(usd, encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [to, value] }));
  };
  const pool = lazy(async () => new pg.Pool({ connectionString: target.databaseUrl ?? undefined, max: 4 }));

  return {
    target,
    url: target.url,
    chainId,
    call,
    now,
    inSeconds: async (seconds) => new Date(((await now()) + seconds) * 1000).toISOString(),
    async newAgent({ usd, tokens } = {}) {
      const agent = await signIn({ url: target.url, chainId });
      const args = [agent.address, parseEther(String(tokens ?? 0))] as const;
      await Promise.all([
        usd === undefined ? undefined : fund(agent.address, usd),
        tokens === undefined
          ? undefined
          : asOwner(
              (await assets()).token,
              encodeFunctionData({ abi: protocolTokenAbi, functionName: "grant", args }),
            ),
      ]);
      return agent;
    },
    usdOf: async (address) =>
      publicClient.readContract({
        address: (await assets()).usd,
        abi: testUsdAbi,
        functionName: "balanceOf",
        args: [address],
      }),
    async moveTime(seconds) {
      const testClient = createTestClient({ mode: "anvil", transport });
      await testClient.increaseTime({ seconds });
      await testClient.mine({ blocks: 1 });
      await followChainTime(chainNow);
      await serviceReaches(target.url, await chainNow());
    },
    async query(sql, values) {
      return (await (await pool()).query(sql, values)).rows;
    },
  };
}

const rpc = (url: string) => ({ default: { http: [url] } });

/** Reads the chain id from a challenge. */
async function chainIdOf(call: Call): Promise<number> {
  const challenge = await call<{ message: string }>("POST", `/v1/agents/0x${"01".repeat(20)}/challenge`);
  const [, id] = /Chain ID: (\d+)/.exec(challenge.data?.message ?? "") ?? [];
  if (id === undefined) throw new Error(`No chain id in the challenge: ${JSON.stringify(challenge.body)}`);
  return Number(id);
}

function probeBody(now: number) {
  const at = (hours: number) => new Date((now + hours * 3600) * 1000).toISOString();
  return {
    title: "Which token is it",
    taskDescription: "None",
    acceptanceCriteria: ["None"],
    contractType: "fixed",
    awardMethod: "open_tender",
    budgetOrPrice: 1,
    matchDeadline: at(1),
    withdrawalDeadline: at(2),
    deliveryDeadline: at(3),
    reviewDeadline: at(4),
  };
}
