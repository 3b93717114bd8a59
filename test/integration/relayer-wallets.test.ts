/** Contract wallets that accept a signature in simulations and not on chain, and those that are honest. */
import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { actionTypedData } from "@working-contracts/protocol/signatures";
import { decodeFunctionData, encodeErrorResult, type Hex, keccak256, zeroAddress } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { verifyNode } from "../../src/chain/deployment.js";
import type { SignerContext } from "../../src/relayer/context.js";
import { signersAtFault } from "../../src/relayer/failures.js";
import { admitSigned } from "../../src/relayer/limits.js";
import {
  acceptOperation,
  cancelOperation,
  carrySigned,
  declineOperation,
  delegateOperation,
  type NewOperation,
  refundDirectTransferOperation,
} from "../../src/relayer/operations.js";
import type { OperationRow } from "../../src/relayer/outbox.js";
import { transferData } from "../support/chain.js";
import type { SignedPayment } from "../support/payment.js";
import { PRICE, STAKE, useRelayerNetwork } from "./relayer-network.js";

/** Returns the magic value of ERC-1271. */
const ACCEPT = "631626ba7e60e01b5f5260205ff3";
const HONEST: Hex = `0x${ACCEPT}`;
/** Accepts if the opcode pushes zero; otherwise loops until the gas is gone. */
const acceptsAtZero = (opcode: string): Hex => `0x${opcode}156009575b6005565b${ACCEPT}`;
const ACCEPTS_AT_GAS_PRICE_0 = acceptsAtZero("3a");
/** anvil simulates at a base fee of zero, whatever is asked for. */
const ACCEPTS_AT_BASE_FEE_0 = acceptsAtZero("48");
/** Loops until the gas is gone. */
const BURNS_ALL: Hex = "0x5b5f56";
/** Reverts. */
const REFUSES: Hex = "0x5f5ffd";
const BURST = 12;
const GAS_OF_ONE = 500_000n;

const network = await useRelayerNetwork();

/** An account at whose address this code is. */
async function wallet(bytecode: Hex): Promise<PrivateKeyAccount> {
  const [owner] = await network.agents(1);
  await network.testClient.setCode({ address: owner.address, bytecode });
  return owner;
}

/** A burst of creations by one wallet, and other operations behind it, through one relayer, and the gas that it cost. */
async function burst(
  client: PrivateKeyAccount,
  ...others: NewOperation[]
): Promise<{ outcomes: OperationRow[]; gas: bigint }> {
  const rows = [];
  for (let i = 0; i < BURST; i += 1) rows.push(await network.store(await network.creation(client)));
  for (const other of others) rows.push(await network.store(other));
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
  it("costs no gas if it accepts only at gas price 0", async () => {
    const { outcomes, gas } = await burst(await wallet(ACCEPTS_AT_GAS_PRICE_0));
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(gas).toBe(0n);
    // Its signatures, of any length, are not kept.
    expect(new Set(outcomes.map(({ data }) => data))).toEqual(new Set(["0x"]));
  });

  it("costs one operation's gas, and moves no money, if it passes every simulation and fails on chain", async () => {
    const liar = await wallet(ACCEPTS_AT_BASE_FEE_0);
    const money = await network.balanceOf(liar.address);
    const { outcomes, gas } = await burst(liar);
    expect(outcomes.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(1);
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(gas).toBeGreaterThan(0n);
    expect(gas).toBeLessThan(GAS_OF_ONE);
    expect(await network.balanceOf(liar.address)).toBe(money);
  });

  it("still has its direct transfers refunded, and its sign-ins judged alone, if it fails on chain", async () => {
    const liar = await wallet(ACCEPTS_AT_BASE_FEE_0);
    const escrow = network.addressOf(liar);
    const authorization = await network.authorize(liar, escrow, PRICE);
    const refund = refundDirectTransferOperation({ escrow, caller: escrow, amount: PRICE, authorization });
    const issuedAt = await network.chainTime();
    const narrower = delegateOperation({
      deployment: network.deployment,
      agent: escrow,
      actions: 0,
      until: 0,
      nonce: keccak256("0x01"),
      issuedAt,
      expiresAt: issuedAt + 300,
      signature: `0x${"11".repeat(65)}`,
    });
    const { outcomes } = await burst(liar, refund, narrower);
    expect(outcomes.map(({ reason }) => reason)).toContain("SignerFailed");
    expect(outcomes.slice(-2)).toMatchObject([
      // There is no such escrow.
      { kind: refund.kind, reason: "Reverted" },
      { kind: narrower.kind, reason: "InvalidDelegationSignature" },
    ]);
  });

  it("also costs one operation's gas if it signs actions for simulations only", async () => {
    const [client] = await network.agents(1);
    const liar = await wallet(ACCEPTS_AT_BASE_FEE_0);
    const worker = network.addressOf(liar);
    network.startRelayer({ signer: network.signer(0) });
    const escrows = await Promise.all(Array.from({ length: 4 }, () => network.created(client, { worker })));
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

  it("gets everything applied if it is honest", async () => {
    const { outcomes } = await burst(await wallet(HONEST));
    expect(outcomes.map(({ reason }) => reason)).toEqual(outcomes.map(() => null));
  });

  it("does not slow down an account whose operations were applied: n + 1 go into its next batch, at most 32", async () => {
    const [client] = await network.agents(1);
    const first = await burst(client);
    expect(batchesIn(first.outcomes)).toEqual([1, 2, 4, 5]);
    const more = () => Promise.all(Array.from({ length: 24 }, () => network.creation(client)));
    expect(batchesIn((await burst(client, ...(await more()))).outcomes)).toEqual([BURST + 1, 23]);
    await network.testClient.setCode({ address: client.address, bytecode: ACCEPTS_AT_BASE_FEE_0 });
    const { outcomes, gas } = await burst(client, ...(await more()));
    expect(outcomes.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(32);
    expect(gas).toBeLessThan(32n * GAS_OF_ONE);
  });
});

/** Sizes of the batches, in their order. */
function batchesIn(outcomes: OperationRow[]): number[] {
  const ids = outcomes.map(({ batchId }) => batchId);
  return [...new Set(ids)].map((id) => ids.filter((other) => other === id).length);
}

describe("an account that is a contract wallet only while its batch is executed (EIP-7702)", () => {
  it.each([
    ["costs one operation's gas, and gets no second try", BURNS_ALL],
    ["is not excused if it then uses its payment itself, behind the batch", REFUSES],
  ])("%s", async (_, code) => {
    const isUsed = code === REFUSES;
    const { publicClient, testClient } = network;
    const [client, sponsor] = await network.agents(2);
    const delegate = network.addressOf(await wallet(code));
    const { chainId } = network.deployment;
    /** Sets or clears the account's code, ahead of the batch or behind it. */
    const setCode = async (address: Hex, at: number, maxFeePerGas: bigint, call?: { to: Hex; data: Hex }) => {
      const authorization = await client.signAuthorization({ contractAddress: address, chainId, nonce: at });
      const raw = await sponsor.signTransaction({
        chainId,
        type: "eip7702",
        to: sponsor.address,
        ...call,
        nonce: at,
        gas: 200_000n,
        maxFeePerGas,
        maxPriorityFeePerGas: 1n,
        authorizationList: [authorization],
      });
      await publicClient.sendRawTransaction({ serializedTransaction: raw });
    };
    await testClient.setBalance({ address: sponsor.address, value: 10n ** 18n });
    const rows = [];
    for (let i = 0; i < BURST; i += 1) rows.push(await network.store(await network.creation(client)));
    const [{ data, escrow }] = rows as [OperationRow];
    const { args } = decodeFunctionData({ abi: factoryAbi, data });
    const payment = { from: network.addressOf(client), to: escrow, value: PRICE, ...(args?.[1] as object) };
    const use = { to: network.usd.address, data: transferData(payment as SignedPayment) };
    const signer = network.signer(isUsed ? 3 : 1);
    let flips = 0;
    network.startRelayer({
      signer,
      intercept: async (method) => {
        if (method !== "eth_sendRawTransaction") return;
        const at = 2 * flips;
        flips += 1;
        await network.producer.pause();
        // anvil orders a block by its transactions' maximum fees.
        const { baseFeePerGas } = await publicClient.getBlock();
        await setCode(delegate, at, 10n ** 12n);
        await setCode(zeroAddress, at + 1, 2n * (baseFeePerGas ?? 0n), isUsed ? use : undefined);
        setTimeout(() => network.producer.resume(), 300);
      },
    });
    const outcomes = await Promise.all(rows.map((row) => network.outcome(row)));
    expect(await publicClient.getCode({ address: client.address })).toBeUndefined();
    expect(outcomes.filter(({ publishedAt }) => publishedAt !== null)).toHaveLength(1);
    expect(new Set(outcomes.map(({ state }) => state))).toEqual(new Set(["rejected"]));
    expect(await network.batchesOf(signer)).toHaveLength(1);
    expect(await network.balanceOf(escrow as Hex)).toBe(isUsed ? PRICE : 0n);
  });
});

describe("an account whose payment the chain refused", () => {
  it("is excused after the last second in which the token takes the payment, and not in it", async () => {
    const { db, deployment, publicClient } = network;
    const [client] = await network.agents(1);
    const { hash, number, timestamp } = await publicClient.getBlock();
    const args = [client.address, PRICE] as const;
    const refused = encodeErrorResult({ abi: escrowAbi, errorName: "PaymentFailed", args });
    const failures = new Map<bigint, Hex>();
    for (const sinceLast of [0, 1]) {
      const validBefore = Number(timestamp) + 1 - sinceLast;
      const { id } = await network.store(await network.creation(client, { validBefore }));
      failures.set(id, refused);
    }
    const context = { db, deployment, publicClient } as unknown as SignerContext;
    const place = { blockHash: hash, blockNumber: number, transactionIndex: 0 };
    const blamed = await signersAtFault(context, failures, place);
    expect([...blamed]).toEqual([[[...failures.keys()][0], network.addressOf(client)]]);
  });
});

describe("an ordinary account", () => {
  it("can act until the chain's deadline, although the host's clock is ahead", async () => {
    const times: number[] = [];
    const [client] = await network.agents(1);
    const row = await network.store(await network.creation(client));
    const now = Date.now;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000);
    onTestFinished(() => clock.mockRestore());
    const before = await network.chainTime();
    network.startRelayer({
      signer: network.signer(0),
      async intercept(method, params) {
        if (method !== "eth_simulateV1") return;
        const [{ blockStateCalls }] = params as [{ blockStateCalls: { blockOverrides: { time: Hex } }[] }];
        times.push(Number(blockStateCalls[0]?.blockOverrides.time) - before);
      },
    });
    expect((await network.outcome(row)).reason).toBeNull();
    expect(times.length).toBeGreaterThan(0);
    expect(Math.max(...times)).toBeLessThan(10);
  });

  it("is held to the gas limits once its signature fails on chain because it had expired", async () => {
    const { db, publicClient, testClient } = network;
    const [client, other] = await network.agents(2);
    const gasPolicy = { allowance: 1, budget: 0, perFee: 0 };
    const signer = network.signer(4);
    const first = network.startRelayer({ signer });
    const [escrow, caller] = [await network.created(client), network.addressOf(client)];
    await network.created(other);
    await first.stop();
    const admit = (account: PrivateKeyAccount) =>
      admitSigned({ db, publicClient, config: { gasPolicy } }, network.addressOf(account));
    expect(await admit(client)).toBeUndefined();
    const charged = async () => {
      const { rows } = await network.pool.query("select used from app.gas_account where address = $1", [
        caller,
      ]);
      return Number(rows[0]?.used);
    };
    const before = await charged();

    const deadline = (await network.chainTime()) + 10;
    const cancelling = { ...cancelOperation({ escrow, caller }), caller };
    const call = {
      chainId: network.deployment.chainId,
      contract: escrow,
      agent: caller,
      call: cancelling.data,
    };
    const signature = await client.signTypedData(actionTypedData({ ...call, nonce: 0n, deadline }));
    const cancel = await network.store(carrySigned(cancelling, { deadline, signature }));
    network.startRelayer({
      signer,
      intercept: async (method) => {
        if (method === "eth_sendRawTransaction") await testClient.increaseTime({ seconds: 20 });
      },
    });
    const { publishedAt, blockNumber, reason } = await network.outcome(cancel);
    expect([publishedAt !== null, blockNumber, reason]).toEqual([true, null, "Expired"]);
    await expect(admit(client)).rejects.toMatchObject({
      code: "rate_limited",
      options: { details: { limit: "allowance" } },
    });
    expect(await charged()).toBeGreaterThan(before);
    // Its next operation that is applied changes nothing.
    await network.created(client);
    await expect(admit(client)).rejects.toMatchObject({ code: "rate_limited" });
    expect(await admit(other)).toBeUndefined();
  });

  it("does not suffer for a payment that someone else used ahead of its batch", async () => {
    const { owner, usd } = network;
    const [client, worker] = await network.agents(2);
    const first = network.startRelayer({ signer: network.signer(2) });
    const escrow = await network.created(client);
    await first.stop();
    const authorization = await network.authorize(worker, escrow, STAKE);
    const caller = network.addressOf(worker);
    const acceptance = await network.store(
      acceptOperation({ deployment: network.deployment, escrow, caller, authorization }),
    );
    const others = [
      await network.store(await network.creation(worker)),
      await network.store(await network.creation(worker)),
    ];
    let isUsed = false;
    network.startRelayer({
      signer: network.signer(2),
      intercept: async (method) => {
        if (method !== "eth_sendRawTransaction" || isUsed) return;
        isUsed = true;
        await network.producer.pause();
        const data = transferData(authorization);
        await owner.sendTransaction({
          to: usd.address,
          data,
          gas: 200_000n,
          maxFeePerGas: 10n ** 12n,
        });
        network.producer.resume();
      },
    });
    const { state, publishedAt, blockNumber, reason } = await network.outcome(acceptance);
    expect([state, publishedAt !== null, blockNumber]).toEqual(["rejected", true, null]);
    // Not one of the reasons that are limited.
    expect(reason).toBe("AuthorizationUsed");
    for (const other of others) expect((await network.outcome(other)).reason).toBeNull();
    expect(await network.balanceOf(escrow)).toBe(PRICE + STAKE);
  });
});

describe("a node", () => {
  it("is refused if it cannot read state by block hash, or ignores the hash", async () => {
    const { publicClient } = network;
    const answering = (answer: (hash: unknown) => Promise<unknown>) =>
      ({ ...publicClient, request: ({ params }: { params: [Hex, unknown] }) => answer(params[1]) }) as never;
    await verifyNode(publicClient as never);
    for (const answer of [async () => "0x", () => Promise.reject(new Error("invalid argument"))]) {
      await expect(verifyNode(answering(answer))).rejects.toThrow("RPC_URL: the node does not read state by");
    }
    let asked = 0;
    const late = (params: [Hex, unknown]) =>
      asked++ === 0
        ? Promise.reject(new Error("header not found"))
        : publicClient.request({ method: "eth_getCode", params } as never);
    await verifyNode({ ...publicClient, request: ({ params }: never) => late(params) } as never);
  });
});
