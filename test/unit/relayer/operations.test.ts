import { readFileSync } from "node:fs";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { decodeFunctionData } from "viem";
import { describe, expect, it } from "vitest";
import * as operations from "../../../src/relayer/operations.js";
import { exampleDeployment as deployment } from "../../support/deployment.js";

const word = (digit: string) => `0x${digit.repeat(64)}` as const;
const authorization = {
  validAfter: 1n,
  validBefore: 2n,
  nonce: word("c"),
  signature: `0x${"d".repeat(130)}`,
} as const;
const [escrow, caller] = [`0x${"8".repeat(40)}`, `0x${"9".repeat(40)}`] as const;
const paid = { deployment, escrow, caller, authorization };

describe("the relayer's calls", () => {
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
