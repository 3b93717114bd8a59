/** An operator that holds the keys of the relayer and the owner acts for others. The results are a table of docs/trust.md. */
import { readQuote, signPayment } from "@working-contracts/client/payment";
import type { PinnedNetwork } from "@working-contracts/client/types";
import { verifyContract } from "@working-contracts/client/verify/verify";
import type { Signer } from "@working-contracts/client/wallets";
import { escrowAbi, protocolTokenAbi, registryAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { actionTypedData, type Permission } from "@working-contracts/protocol/signatures";
import {
  type Address,
  concat,
  encodeFunctionData,
  type Hex,
  hexToBigInt,
  keccak256,
  numberToHex,
  pad,
  padHex,
  parseEther,
  size,
  stringToHex,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { Agent } from "../support/agent.js";
import { alone, cancellationOf, frontRun, mined, openFromBalance, walletOf } from "../support/chain.js";
import {
  created,
  delivered,
  disputed,
  draft,
  laterThan,
  matched,
  newJuror,
  newPair,
  ok,
  vote,
} from "../support/contracts.js";
import { expectShown, markdownOf, openOperator } from "../support/operator.js";
import { authorize, quoteOf } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const noPayment = { validAfter: 0n, validBefore: 0n, nonce: zeroHash, signature: "0x" } as const;
const rows: string[][] = [];
interface Escrow {
  id: Address;
}

const world = await useWorld();
const operator = await openOperator(world);
let client: Agent;
let worker: Agent;
afterAll(() => console.log(table()));

beforeEach(async () => {
  ({ client, worker } = await newPair(world));
});

function table(): string {
  const head = [
    "Attack",
    "Agent that never acted through the operator",
    "Agent that delegated",
    "After it revoked",
    "Agent that signs each action, with our client",
  ];
  return markdownOf(head, rows);
}

/** The operator registers the strict sign-in as well, and attacks. */
async function attackedAfterStrictSignIn(id: Address, victim: Agent, data: Hex): Promise<string> {
  const register = await operator.delegationOf(victim, { actions: 0, until: 0 });
  expect(await operator.relayed(world.deployment.delegation, register)).toBe("succeeds");
  return operator.relayed(id, data);
}

/** The Client's approval, as it signs it for anyone to carry. */
async function approvalOf(contract: Address, agent: Agent): Promise<Hex> {
  const deadline = (await world.chainNow()) + 600;
  const approve = call("approve");
  const { chainId } = world.deployment;
  const signature = await agent.account.signTypedData(
    actionTypedData({ chainId, contract, agent: agent.address, call: approve, nonce: 0n, deadline }),
  );
  const args = [agent.address, deadline, signature, approve] as const;
  return encodeFunctionData({ abi: escrowAbi, functionName: "withSignature", args });
}

const call = (functionName: "approve" | "withdraw" | "cancel" | "decline"): Hex =>
  encodeFunctionData({ abi: escrowAbi, functionName });
const garbage = encodeFunctionData({
  abi: escrowAbi,
  functionName: "deliver",
  args: [keccak256(stringToHex("garbage")), zeroHash, 0],
});

const open = () => created<Escrow>(world, client);
const award = () => created<Escrow>(world, client, { awardMethod: "direct_award", worker: worker.address });
const running = () => matched<Escrow>(world, { client, worker });
const underReview = () => delivered<Escrow>(world, { client, worker });

/** Each needs an escrow of its own, because a success ends the state that it needs. */
const ATTACKS: [name: string, prepare: () => Promise<Escrow>, victim: () => Agent, data: Hex][] = [
  ["cancel in the Client's name", open, () => client, call("cancel")],
  ["decline in the Worker's name", award, () => worker, call("decline")],
  ["deliver garbage in the Worker's name", running, () => worker, garbage],
  ["withdraw in the Worker's name", running, () => worker, call("withdraw")],
  ["approve in the Client's name", underReview, () => client, call("approve")],
];

describe("an operator with a stolen Relay key", () => {
  test.each(ATTACKS)("can %s only while the agent delegates", async (name, prepare, victimOf, data) => {
    const [{ id }, victim] = [await prepare(), victimOf()];
    const never = await operator.relayed(id, data);
    const register = await operator.delegationOf(victim);
    expect(await operator.relayed(world.deployment.delegation, register)).toBe("succeeds");
    const delegated = await operator.relayed(id, data);
    const next = await prepare();
    await (await alone(world, victim)).revoke();
    const revoked = await operator.relayed(next.id, data);
    const replayed = await operator.relayed(world.deployment.delegation, register);
    const strict = await attackedAfterStrictSignIn(next.id, victim, data);
    const replay = `${revoked}; replay of the delegation ${replayed}`;
    rows.push([name, never, delegated, replay, strict]);
    expect([never, delegated, revoked, replayed, strict]).toEqual([
      "`NotParty`",
      "succeeds",
      "`NotParty`",
      "`DelegationOutdated`",
      "`NotParty`",
    ]);
  });

  test("cannot carry a signature to another contract, nor use it again", async () => {
    const [escrow, other] = [await underReview(), await underReview()];
    const signed = await approvalOf(escrow.id, client);
    const elsewhere = await operator.relayed(other.id, signed);
    expect(await operator.relayed(escrow.id, signed)).toBe("succeeds");
    const again = await operator.relayed(escrow.id, signed);
    rows.push(["carry its signature to another contract", "", "", "", elsewhere]);
    rows.push(["use its signature again", "", "", "", again]);
    expect([elsewhere, again]).toEqual(["`InvalidActionSignature`", "`WrongStatus`"]);
  });

  test("can take a stock client's payment for an accomplice, but not one of our client", async () => {
    const { asset, chainId } = world.deployment;
    const accomplice = await world.newAgent();
    /** The accomplice cancels a payment of the same amount, and the operator has it "refunded". */
    const refundOf = async (escrow: Address, amount: bigint): Promise<string> => {
      const cancelled = await authorize(accomplice, { ...quote, payTo: escrow }, world);
      const cancellation = await cancellationOf(world.deployment, accomplice.account, cancelled.nonce);
      await mined(world, await operator.wallet.sendTransaction(cancellation));
      const args = [accomplice.address, amount, cancelled] as const;
      const data = encodeFunctionData({ abi: escrowAbi, functionName: "refundDirectTransfer", args });
      return operator.relayed(escrow, data);
    };
    const [first, second] = [await created<Escrow>(world, client), await created<Escrow>(world, client)];
    const accept = ({ id }: Escrow) => worker.post(`/v1/contracts/${id}/accept`, { accept: true });
    const quote = quoteOf(await accept(first));
    const amount = BigInt(quote.maxAmountRequired);
    await frontRun(world, accomplice, await authorize(worker, quote, world));
    const stock = await refundOf(first.id, amount);
    expect(await world.usdOf(accomplice.address)).toBe(amount);

    const quoted = readQuote((await accept(second)).headers);
    const network = { chainId, asset: { ...asset, address: asset.address.toLowerCase() } } as PinnedNetwork;
    const validBefore = Math.floor(Date.now() / 1000) + 600;
    const expected = { payTo: second.id, amount, currency: "stablecoin", resource: "" } as const;
    const signer = worker.account as Signer;
    const header = await signPayment({ signer, network }, quoted, { expected, validBefore });
    const { payload } = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    const { from, to, value, validAfter, nonce } = payload.authorization;
    for (const functionName of ["transferWithAuthorization", "receiveWithAuthorization"] as const) {
      const args = [from, to, value, validAfter, BigInt(validBefore), nonce, payload.signature] as const;
      const use = { address: asset.address, abi: testUsdAbi, functionName, args } as const;
      await expect(
        world.publicClient.simulateContract({ ...use, account: operator.wallet.account }),
      ).rejects.toThrow("reverted");
    }
    const ours = await refundOf(second.id, amount);
    rows.push(["take a Worker Stake for an accomplice", stock, stock, stock, ours]);
    expect([stock, ours]).toEqual(["succeeds", "`InsufficientUnbookedBalance`"]);
  });

  test("cannot unstake the Backup Agents of a matched contract in time", async () => {
    const [juror, leaving] = [await newJuror(world), await newJuror(world)];
    const { registry, delegation } = world.deployment;
    const unstaking = ({ address }: Agent) =>
      encodeFunctionData({ abi: registryAbi, functionName: "requestUnstake", args: [address] });
    const unstake = unstaking(juror);
    const { id } = await matched<Escrow>(world, { client, worker });
    const never = await operator.relayed(registry, unstake);
    const strict = await attackedAfterStrictSignIn(registry, juror, unstake);
    for (const one of [juror, leaving])
      expect(await operator.relayed(delegation, await operator.delegationOf(one))).toBe("succeeds");
    await (await alone(world, leaving)).revoke();
    const revoked = await operator.relayed(registry, unstaking(leaving));
    expect(await operator.relayed(registry, unstake)).toBe("succeeds");
    await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
    await client.pay(`/v1/contracts/${id}/dispute`);
    await vote(juror, id, "met", "met", "met");
    rows.push([
      "unstake the Backup Agents of a matched contract",
      never,
      "they vote for 48 hours",
      revoked,
      strict,
    ]);
    expect([never, revoked, strict]).toEqual(Array(3).fill("`NotAgentOrOperator`"));
  });

  test("cannot forge a delegation", async () => {
    const { delegation } = world.deployment;
    const forged = async (agent: Agent) => {
      const account = privateKeyToAccount(generatePrivateKey());
      return operator.relayed(delegation, await operator.delegationOf({ ...agent, account }));
    };
    const never = await forged(worker);
    await operator.relayed(delegation, await operator.delegationOf(worker));
    await (await alone(world, worker)).revoke();
    const revoked = await forged(worker);
    await operator.relayed(delegation, await operator.delegationOf(client, { actions: 0, until: 0 }));
    const strict = await forged(client);
    rows.push(["register a delegation that the agent did not sign", never, "", revoked, strict]);
    expect([never, revoked, strict]).toEqual(Array(3).fill("`InvalidDelegationSignature`"));
  });
});

describe("an operator with the token owner's key", () => {
  test("cannot pack the jury of a contract that is already matched", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    const { owner, wallet } = operator;
    const { address } = wallet.account;
    const { protocolToken, registry } = world.deployment;
    const amount = parseEther("1000");
    const token = { address: protocolToken, abi: protocolTokenAbi } as const;
    await mined(
      world,
      await owner.writeContract({ ...token, functionName: "grant", args: [address, amount] }),
    );
    await mined(
      world,
      await wallet.writeContract({ ...token, functionName: "approve", args: [registry, amount] }),
    );
    const stake = { address: registry, abi: registryAbi, functionName: "stake" } as const;
    await mined(world, await wallet.writeContract({ ...stake, args: [address, amount, noPayment] }));
    await laterThan(world, new Date((await world.chainNow()) * 1000).toISOString());
    await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
    await client.pay(`/v1/contracts/${id}/dispute`);

    const voting = {
      abi: [...escrowAbi, ...registryAbi],
      functionName: "vote",
      args: [address, keccak256("0x01"), noPayment],
    } as const;
    await expect(
      world.publicClient.simulateContract({ address: id, ...voting, account: wallet.account }),
    ).rejects.toThrow("NotEligible");
    const later = await disputed<Escrow>(world, { client, worker });
    await expect(
      world.publicClient.simulateContract({ address: later.id, ...voting, account: wallet.account }),
    ).rejects.not.toThrow("NotEligible");
    rows.push(["pack the jury of a matched contract", ...Array(4).fill("`NotEligible`")]);
  });
});

describe("verify", () => {
  /** Calls the address in its first word with the rest of its input. */
  const FORWARDS = "0x6020360360205f375f5f602036035f5f5f355af100";

  /** The same, with all bits of its input inverted. */
  const FORWARDS_INVERTED =
    "0x60205b368110156019578035198160209003526020016002565b5f5f602036035f5f5f35195af100";

  async function allowedBy(id: Address, name = "Withdrawn"): Promise<string | undefined> {
    const options = { nodes: [world.info.rpcUrl], network: world.deployment };
    const { steps } = await verifyContract(new Error("No service"), id, options);
    return steps.find(({ step }) => step === name)?.allowedBy;
  }

  /** A third party to which the Worker leaves actions. */
  async function registered(delegate: Agent, permission?: Permission): Promise<Hex> {
    const data = await operator.delegationOf(worker, permission, { operator: delegate.address });
    const wallet = await walletOf(world, delegate);
    return mined(world, await wallet.sendTransaction({ to: world.deployment.delegation, data }));
  }

  test("attributes a call to the operator that sent it, not to the one that was registered last", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    const delegate = await world.newAgent();
    const hash = await registered(delegate);
    const strict = await operator.delegationOf(worker, { actions: 0, until: 0 });
    expect(await operator.relayed(world.deployment.delegation, strict)).toBe("succeeds");
    await (await alone(world, delegate)).withdraw(id);
    expect(await allowedBy(id)).toBe(`its delegation to ${delegate.address}, registered in ${hash}`);
  });

  test("attributes what the operator carried to the delegation that allowed it", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    await operator.relayed(world.deployment.delegation, await operator.delegationOf(worker));
    expect(await operator.relayed(id, call("withdraw"))).toBe("succeeds");
    expect(await allowedBy(id)).toMatch(/^its delegation to the operator, registered in 0x/);
  });

  test("names the operator also if it registered a text through a contract that hides it", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    const sender = await world.newAgent();
    const masking = privateKeyToAccount(generatePrivateKey()).address;
    await world.testClient.setCode({ address: masking, bytecode: FORWARDS_INVERTED });
    const plain = concat([pad(world.deployment.delegation), await operator.delegationOf(worker)]);
    const wordCount = Math.ceil(size(plain) / 32);
    const inverted = ~hexToBigInt(padHex(plain, { size: 32 * wordCount, dir: "right" }));
    const data = numberToHex(BigInt.asUintN(256 * wordCount, inverted), { size: 32 * wordCount });
    const wallet = await walletOf(world, sender);
    await mined(world, await wallet.sendTransaction({ to: masking, data, gas: 500_000n }));
    expect(await operator.relayed(id, call("withdraw"))).toBe("succeeds");
    expect(await allowedBy(id)).toBe(
      "its delegation to the operator, in a text that the chain does not show",
    );
  });

  test("takes a transfer of nothing for no one's consent", async () => {
    const stranger = await world.newAgent({ usd: "100" });
    const { payTo, amount } = quoteOf(await client.post("/v1/contracts", await draft(world)));
    const terms = ok(await client.get<TermsView>(`/v1/contracts/${payTo}/terms`));
    const wallet = await walletOf(world, stranger);
    const token = { address: world.deployment.asset.address, abi: testUsdAbi } as const;
    const nothing = [client.address, payTo, 0n] as const;
    await mined(world, await wallet.writeContract({ ...token, functionName: "transferFrom", args: nothing }));
    const whole = [payTo, BigInt(amount)] as const;
    await mined(world, await wallet.writeContract({ ...token, functionName: "transfer", args: whole }));
    await openFromBalance(world, stranger, terms);
    expect((await allowedBy(payTo, "Created"))?.toLowerCase()).toBe(`no signature: ${stranger.address} paid`);
  });

  test("does not attribute a contract wallet's own call to a delegation that does not allow it", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    const sender = await world.newAgent();
    await registered(sender, { actions: 1, until: 0 });
    const strict = await operator.delegationOf(worker, { actions: 0, until: 0 });
    expect(await operator.relayed(world.deployment.delegation, strict)).toBe("succeeds");
    await world.testClient.setCode({ address: worker.address, bytecode: FORWARDS });
    const wallet = await walletOf(world, sender);
    const data = concat([pad(id), call("withdraw")]);
    // An estimate would do without the inner call.
    const gas = 500_000n;
    await mined(world, await wallet.sendTransaction({ to: worker.address, data, gas }));
    expect(await allowedBy(id)).toBe("a call by its own contract");
  });
});

test("docs/trust.md shows these results, and no others", () => {
  expectShown(table());
});
