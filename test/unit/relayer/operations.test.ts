import { readFileSync } from "node:fs";
import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import { DEFAULT_PARAMETERS, packTerms } from "@working-contracts/protocol/terms";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import { decodeFunctionData } from "viem";
import { describe, expect, it } from "vitest";
import * as operations from "../../../src/relayer/operations.js";
import { exampleDeployment as deployment } from "../../support/deployment.js";

const address = (digit: string) => `0x${digit.repeat(40)}` as const;
const word = (digit: string) => `0x${digit.repeat(64)}` as const;

const escrow = address("8");
const caller = address("9");
const authorization = {
  validAfter: 1n,
  validBefore: 2n,
  nonce: word("c"),
  signature: `0x${"d".repeat(130)}`,
} as const;
const paid = { deployment, escrow, caller, authorization };
const payment = { asset: deployment.asset.address, payer: caller, nonce: authorization.nonce };

const terms: EscrowTerms = {
  initiator: caller,
  price: 50_000_000n,
  counterparty: address("0"),
  criteriaCount: 2,
  workerInitiated: false,
  computedCriteria: false,
  matchDeadline: 10,
  withdrawalDeadline: 20,
  deliveryDeadline: 30,
  reviewDeadline: 40,
  termsHash: word("e"),
  parameters: DEFAULT_PARAMETERS,
};

describe("the relayer's calls", () => {
  it("creates at the factory, paying for the escrow", () => {
    const operation = operations.createOperation({ ...paid, terms, requestHash: "hash", notAfter: 99 });
    expect(operation).toMatchObject({
      kind: "create",
      target: deployment.factory,
      escrow,
      caller,
      payment,
      requestHash: "hash",
      notAfter: 99,
    });
    expect(decodeFunctionData({ abi: factoryAbi, data: operation.data })).toEqual({
      functionName: "create",
      args: [packTerms(terms), authorization],
    });
  });

  it("accepts, disputes and votes at the escrow with the payer's authorization", () => {
    const accept = operations.acceptOperation(paid);
    const dispute = operations.disputeOperation(paid);
    const vote = operations.voteOperation({ ...paid, commitment: word("f") });
    for (const operation of [accept, dispute, vote])
      expect(operation).toMatchObject({ target: escrow, payment });
    const call = (data: `0x${string}`) => decodeFunctionData({ abi: escrowAbi, data });
    expect(call(accept.data).args?.map(String)[0]?.toLowerCase()).toBe(caller);
    expect(call(dispute.data)).toEqual({ functionName: "dispute", args: [authorization] });
    expect(call(vote.data).args?.slice(1)).toEqual([word("f"), authorization]);
  });

  it.each([
    ["accept", operations.acceptOperation],
    ["dispute", operations.disputeOperation],
    ["vote", (act: typeof paid) => operations.voteOperation({ ...act, commitment: word("f") })],
  ] as const)("lets %s use a direct transfer only if that transfer was seen", (kind, build) => {
    const plain = build(paid);
    expect(build({ ...paid, directTransfer: false })).toEqual(plain);
    const { data, ...same } = build({ ...paid, directTransfer: true });
    expect({ ...same, data: plain.data }).toEqual(plain);
    expect(same.kind).toBe(kind);
    expect(decodeFunctionData({ abi: escrowAbi, data })).toEqual({
      functionName: "withDirectTransfer",
      args: [plain.data],
    });
  });

  it.each([
    ["decline", operations.declineOperation],
    ["cancel", operations.cancelOperation],
    ["withdraw", operations.withdrawOperation],
    ["approve", operations.approveOperation],
  ] as const)("encodes %s, once per escrow", (name, build) => {
    const operation = build({ escrow, caller });
    expect(decodeFunctionData({ abi: escrowAbi, data: operation.data }).functionName).toBe(name);
    expect(operation).toMatchObject({ kind: name, target: escrow, caller, onceKey: `${name}:${escrow}` });
    expect(operation.payment).toBeUndefined();
  });

  it.each([
    ["tally", operations.tallyOperation],
    ["settle", operations.settleOperation],
  ] as const)("encodes the keeper's %s, on no one's behalf", (name, build) => {
    const operation = build({ escrow });
    expect(decodeFunctionData({ abi: escrowAbi, data: operation.data }).functionName).toBe(name);
    expect(operation).toMatchObject({ kind: name, caller: null, onceKey: `${name}:${escrow}` });
  });

  it("registers and revokes delegations to the Relay", () => {
    const delegation = operations.delegateOperation({
      deployment,
      agent: caller,
      actions: 3,
      until: 7,
      nonce: word("1"),
      issuedAt: 5,
      expiresAt: 6,
      signature: authorization.signature,
    });
    expect(decodeFunctionData({ abi: delegationAbi, data: delegation.data }).args).toEqual([
      {
        agent: expect.stringMatching(new RegExp(caller, "i")),
        operator: expect.stringMatching(new RegExp(deployment.relay, "i")),
        actions: 3,
        until: 7,
        nonce: word("1"),
        issuedAt: 5,
        expiresAt: 6,
      },
      authorization.signature,
    ]);
    const revocation = operations.revokeDelegationOperation({
      deployment,
      agent: caller,
      challengeId: "one",
    });
    expect(revocation.onceKey).toBe(`revoke-delegation:${caller}:one`);
  });

  it("stakes protocol tokens, which are not the stablecoin", () => {
    const stake = operations.stakeOperation({ deployment, agent: caller, amount: 7n, authorization });
    expect(stake.payment?.asset).toBe(deployment.protocolToken);
    expect(decodeFunctionData({ abi: registryAbi, data: stake.data }).functionName).toBe("stake");
  });

  it("gives a contract wallet's signature more gas", () => {
    const long = { ...authorization, signature: `0x${"d".repeat(600)}` } as const;
    const [ordinary, wallet] = [
      operations.acceptOperation(paid),
      operations.acceptOperation({ ...paid, authorization: long }),
    ];
    expect(wallet.gasLimit).toBeGreaterThan(ordinary.gasLimit);
  });
});

/** Whole transactions with one operation each, by `kind` or `kind, variant`. */
const MEASURED: Record<string, string> = JSON.parse(
  readFileSync(new URL("../../contracts/snapshots/operations-alone.json", import.meta.url), "utf8"),
);
const INTRINSIC_GAS = 21_000;
const HEADROOM = 1.5;

describe("gas limits", () => {
  it.each(Object.keys(operations.GAS_LIMITS) as operations.OperationKind[])(
    "%s has 1.5 times its costliest measurement",
    (kind) => {
      const measurements = Object.entries(MEASURED)
        .filter(([name]) => name === kind || name.startsWith(`${kind}, `))
        .map(([, gas]) => Number(gas) - INTRINSIC_GAS);
      expect(measurements.length, "measured").toBeGreaterThan(0);
      expect(operations.GAS_LIMITS[kind]).toBeGreaterThanOrEqual(HEADROOM * Math.max(...measurements));
    },
  );
});
