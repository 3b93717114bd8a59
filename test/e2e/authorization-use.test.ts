/** Finds the transaction that used a payment, on nodes that serve few blocks per request, or do not respond. */
import { randomBytes } from "node:crypto";
import { type Address, type Hex, keccak256 } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { afterAll, describe, expect, test } from "vitest";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import type { Deps } from "../../src/deps.js";
import { findUse } from "../../src/payments/authorization-use.js";
import { isOwedDirectTransfer } from "../../src/payments/direct-transfer.js";
import type { PaymentAuthorization } from "../../src/payments/x402.js";
import { localAccount } from "../../tools/local/network.js";
import { type RpcAnswer, startRpcProxy } from "../faults/support/rpc-proxy.js";
import { cancellationOf, transferData } from "../support/chain.js";
import { created } from "../support/contracts.js";
import { domainOf, signAuthorization } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const running: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(running.map((stop) => stop())));

const accounts = new Map<Address, PrivateKeyAccount>();
const sender = createSigningClient({
  rpcUrl: world.info.rpcUrl,
  chain: world.publicClient.chain,
  account: localAccount(7),
});
const { id: escrow } = await created(world, await world.newAgent({ usd: "50" }));
const payment = await signedPayment();
const used = await send(payment);
await world.testClient.mine({ blocks: 300, interval: 1 });

async function signedPayment(): Promise<PaymentAuthorization> {
  const account = privateKeyToAccount(generatePrivateKey());
  accounts.set(account.address.toLowerCase() as Address, account);
  const signed = await signAuthorization(account, domainOf(world.deployment), {
    to: escrow as Address,
    value: 1n,
    validAfter: BigInt((await world.chainNow()) - 600),
    validBefore: BigInt((await world.chainNow()) + 86_400),
  });
  const unnamed = { scheme: null, network: null, accepted: null };
  return { version: 2, ...unnamed, ...signed };
}

async function send(payment: PaymentAuthorization) {
  await world.fundUsd(payment.from, "1");
  const to = world.deployment.asset.address;
  const hash = await sender.sendTransaction({ to, data: transferData(payment) });
  await world.publicClient.waitForTransactionReceipt({ hash });
  return hash;
}

async function cancel({ from, nonce }: PaymentAuthorization): Promise<void> {
  const account = accounts.get(from);
  if (account === undefined) throw new Error(`no account signs for ${from}`);
  const hash = await sender.sendTransaction(await cancellationOf(world.deployment, account, nonce));
  await world.publicClient.waitForTransactionReceipt({ hash });
}

/**
 * The chain behind a provider that serves eth_getLogs for at most `maxBlocks` per request, and otherwise refuses it as
 * said.
 */
async function provider(maxBlocks: number, refusal: RpcAnswer) {
  const asked: number[] = [];
  const { url: rpcUrl, setRule, stop } = await startRpcProxy(world.info.rpcUrl);
  running.push(stop);
  setRule(async ({ method, params }, forward) => {
    if (method !== "eth_getLogs") return forward();
    const [range] = params as { fromBlock: Hex; toBlock: Hex }[];
    if (range?.fromBlock === undefined) return forward();
    const blocks = Number(range.toBlock) - Number(range.fromBlock) + 1;
    asked.push(blocks);
    return blocks > maxBlocks ? refusal : forward();
  });
  const { publicClient } = createChainClients({ rpcUrl, chainId: world.deployment.chainId });
  return { asked, deps: { publicClient, deployment: world.deployment } };
}

const tooWide = {
  "an RPC error": { error: { code: -32_005, message: "query exceeds max block range" } },
  "HTTP 400": { status: 400, error: { code: -32_602, message: "block range is too wide" } },
};

describe("the transaction that used a payment", () => {
  test("is found at once if the node serves many blocks per request", async () => {
    const { deps, asked } = await provider(10_000, tooWide["an RPC error"]);
    expect((await findUse(deps, payment))?.transactionHash).toBe(used);
    expect(asked).toHaveLength(1);
  });

  test.each(Object.entries(tooWide))(
    "is found on a node that rejects wide ranges with %s",
    async (_name, refusal) => {
      const { deps, asked } = await provider(64, refusal);
      expect((await findUse(deps, payment))?.transactionHash).toBe(used);
      expect(Math.max(...asked)).toBeGreaterThan(64);
      expect(asked.filter((blocks) => blocks <= 64).length).toBeGreaterThan(4);
    },
  );

  test("is found even if the payment has expired since and its use is many windows ago", async () => {
    const expired = { ...payment, validBefore: payment.validAfter + 601n };
    const { deps, asked } = await provider(64, tooWide["an RPC error"]);
    expect((await findUse(deps, expired))?.transactionHash).toBe(used);
    expect(asked.filter((blocks) => blocks <= 64).length).toBeGreaterThan(4);
  });

  test("is found even if the payment expired before the newest blocks that are searched", async () => {
    const { deps } = await provider(64, tooWide["an RPC error"]);
    const { blockNumber } = await world.publicClient.getTransactionReceipt({ hash: used });
    const { timestamp } = await world.publicClient.getBlock({ blockNumber });
    const searched = 50n;
    const expired = { ...payment, validBefore: timestamp + 1n };
    expect((await findUse(deps, expired, { searched }))?.transactionHash).toBe(used);
    const unused = { ...expired, nonce: `0x${randomBytes(32).toString("hex")}` as Hex };
    expect(await findUse(deps, { ...unused, validAfter: timestamp - 1n }, { searched })).toBeNull();
    const { deps: again } = await provider(64, tooWide["an RPC error"]);
    expect(await findUse(again, { ...unused, validAfter: 0n }, { searched: 10n })).toBeNull();
  });

  test("is not found for a cancelled payment", async () => {
    const cancelled = await signedPayment();
    await cancel(cancelled);
    const { deps } = await provider(64, tooWide["an RPC error"]);
    expect(await findUse(deps, cancelled)).toBeNull();
  });
});

test("a payer's long searches that find no use run one at a time, with a pause behind each", async () => {
  const cancelled = await signedPayment();
  await cancel(cancelled);
  await world.testClient.mine({ blocks: 300, interval: 1 });
  const { deps, asked } = await provider(64, tooWide["an RPC error"]);
  // The cancellation is older than what is searched, as it would be after two days.
  const search = () =>
    findUse(deps, { ...cancelled, validAfter: 0n, validBefore: 2n ** 256n - 1n }, { searched: 200n });
  const unavailable = { status: "rejected", reason: expect.objectContaining({ code: "unavailable" }) };
  const first = await Promise.allSettled(Array.from({ length: 10 }, search));
  expect(first).toEqual(first.map(() => unavailable));
  const { length } = asked;
  await expect(search()).rejects.toMatchObject({ code: "unavailable" });
  expect(asked.length - length).toBeLessThanOrEqual(1);
  // Ten first windows, and the rest of one search.
  expect(length).toBeLessThan(30);
  // Others are searched, and so is a payment of the same payer that is found at once.
  expect((await findUse(deps, payment))?.transactionHash).toBe(used);
});

describe("a direct transfer by the same authorization", () => {
  const judged = (confirmations: number, publicClient = world.publicClient) => {
    const { db, deployment } = world;
    const deps = { db, publicClient, deployment, config: { confirmations } } as Deps;
    return isOwedDirectTransfer(deps, payment, "credit");
  };

  test("is seen once its block is final", async () => {
    expect(await judged(300)).toBe(true);
  });

  test("is not reported before: its payer may have cancelled it on another branch", async () => {
    await expect(judged(1_000_000)).rejects.toMatchObject({ code: "settlement_pending" });
  });

  test("is not reported from a block on a branch that the chain has left", async () => {
    const { publicClient } = world;
    const getBlock = async (request: never) => {
      const block = await publicClient.getBlock(request);
      return { ...block, hash: keccak256(block.hash as Hex) };
    };
    const onTwoBranches = { ...publicClient, getBlock } as unknown as typeof publicClient;
    await expect(judged(300, onTwoBranches)).rejects.toMatchObject({ code: "settlement_pending" });
  });
});

describe("a search that the node does not answer proves nothing", () => {
  test("ends where the payment was not valid yet, on a node behind the one that knows its use", async () => {
    const unseen = await signedPayment();
    const { deps, asked } = await provider(64, tooWide["an RPC error"]);
    const search = findUse(deps, { ...unseen, validAfter: BigInt(await world.chainNow()) });
    await expect(search).rejects.toMatchObject({ code: "unavailable" });
    expect(asked.filter((blocks) => blocks <= 64)).toHaveLength(1);
  });

  test("fails on a node that rejects every range", async () => {
    const { deps, asked } = await provider(0, tooWide["an RPC error"]);
    await expect(findUse(deps, payment)).rejects.toThrow();
    expect(asked.at(-1)).toBe(1);
  });

  test("fails on an unreachable node, which is not asked again with smaller ranges", async () => {
    const { deps, asked } = await provider(10_000, tooWide["an RPC error"]);
    const { asked: none, deps: lost } = await provider(0, {
      status: 503,
      error: { code: -32_000, message: "no backend" },
    });
    expect(await findUse(deps, payment)).not.toBeNull();
    await expect(findUse(lost, payment)).rejects.toThrow();
    expect([asked.length, none.length]).toEqual([1, 1]);
  });

  test("fails on a node that serves too few blocks per request to search them all", async () => {
    const old = { ...payment, validAfter: 0n, nonce: `0x${randomBytes(32).toString("hex")}` as Hex };
    const { deps } = await provider(1, tooWide["an RPC error"]);
    await expect(findUse(deps, old)).rejects.toMatchObject({ code: "unavailable" });
  });
});
