/** Contract wallets that accept a signature in simulations and not on chain, and those that are honest. */
import type { Hex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { verifyNode } from "../../src/chain/deployment.js";
import { carrySigned, declineOperation } from "../../src/relayer/operations.js";
import type { OperationRow } from "../../src/relayer/outbox.js";
import { type RelayerNetwork, startRelayerNetwork } from "./relayer-network.js";

/** Returns the magic value of ERC-1271. */
const ACCEPT = "631626ba7e60e01b5f5260205ff3";
const HONEST: Hex = `0x${ACCEPT}`;
/** Accepts if the opcode pushes zero; otherwise loops until the gas is gone. */
const acceptsAtZero = (opcode: string): Hex => `0x${opcode}156009575b6005565b${ACCEPT}`;
const ACCEPTS_AT_GAS_PRICE_0 = acceptsAtZero("3a");
/** anvil simulates at a base fee of zero, whatever is asked for. */
const ACCEPTS_AT_BASE_FEE_0 = acceptsAtZero("48");
const BURST = 12;
const GAS_OF_ONE = 500_000n;

let network: RelayerNetwork;

beforeAll(async () => {
  network = await startRelayerNetwork();
});
afterEach(() => network.stopRelayers());
afterAll(() => network?.stop());

/** An account at whose address this code is. */
async function wallet(bytecode: Hex): Promise<PrivateKeyAccount> {
  const [account] = await network.agents(1);
  if (account === undefined) throw new Error("no agent");
  await network.testClient.setCode({ address: account.address, bytecode });
  return account;
}

/** A burst of creations by one wallet, through one relayer, and the gas that it cost. */
async function burst(client: PrivateKeyAccount): Promise<{ outcomes: OperationRow[]; gas: bigint }> {
  const rows = [];
  for (let i = 0; i < BURST; i += 1) rows.push(await network.store(await network.creation(client)));
  const signer = network.signer(0);
  const before = await network.publicClient.getBlockNumber();
  network.startRelayer({ signer });
  const outcomes = await Promise.all(rows.map((row) => network.outcome(row)));
  await network.stopRelayers();
  let gas = 0n;
  for (const { transactionHash, blockNumber } of await network.batchesOf(signer)) {
    if (transactionHash === null || (blockNumber ?? 0n) <= before) continue;
    const receipt = await network.publicClient.getTransactionReceipt({ hash: transactionHash as Hex });
    gas += receipt.gasUsed;
  }
  return { outcomes, gas };
}

describe("a contract wallet", () => {
  it("that accepts only at gas price 0 costs no gas", async () => {
    const { outcomes, gas } = await burst(await wallet(ACCEPTS_AT_GAS_PRICE_0));
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(gas).toBe(0n);
  });

  it("that passes every simulation and fails on chain costs one operation's gas, and no money moves", async () => {
    const liar = await wallet(ACCEPTS_AT_BASE_FEE_0);
    const money = await network.balanceOf(liar.address);
    const { outcomes, gas } = await burst(liar);
    expect(outcomes.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(1);
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(gas).toBeGreaterThan(0n);
    expect(gas).toBeLessThan(GAS_OF_ONE);
    expect(await network.balanceOf(liar.address)).toBe(money);
  });

  it("that signs actions for simulations only costs one operation's gas, too", async () => {
    const [client] = await network.agents(1);
    const liar = await wallet(ACCEPTS_AT_BASE_FEE_0);
    const worker = network.addressOf(liar);
    network.startRelayer({ signer: network.signer(0) });
    const escrows = await Promise.all(
      Array.from({ length: 4 }, () => network.created(client as PrivateKeyAccount, { worker })),
    );
    await network.stopRelayers();
    const signed = {
      deadline: (await network.chainTime()) + 3600,
      signature: `0x${"11".repeat(65)}`,
    } as const;
    const rows = [];
    for (const escrow of escrows) {
      const declining = { ...declineOperation({ escrow, caller: worker }), caller: worker };
      rows.push(await network.store(carrySigned(declining, signed)));
    }
    network.startRelayer({ signer: network.signer(0) });
    const outcomes = await Promise.all(rows.map((row) => network.outcome(row)));
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(outcomes.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(1);
  });

  it("that is honest gets everything applied", async () => {
    const { outcomes } = await burst(await wallet(HONEST));
    expect(outcomes.map(({ reason }) => reason)).toEqual(outcomes.map(() => null));
  });

  it("does not slow down an ordinary account, whose burst is one batch", async () => {
    const [client] = await network.agents(1);
    const { outcomes } = await burst(client as PrivateKeyAccount);
    expect(new Set(outcomes.map(({ batchId }) => batchId)).size).toBe(1);
  });
});

describe("a node", () => {
  it("that cannot read state by block hash, or ignores the hash, is refused", async () => {
    const { publicClient } = network;
    const answering = (answer: (hash: unknown) => Promise<unknown>) =>
      ({ ...publicClient, request: ({ params }: { params: [Hex, unknown] }) => answer(params[1]) }) as never;
    await verifyNode(publicClient as never);
    for (const answer of [async () => "0x", () => Promise.reject(new Error("invalid argument"))]) {
      await expect(verifyNode(answering(answer))).rejects.toThrow("RPC_URL: the node does not read state by");
    }
  });
});
