/** SECURITY.md names an existing test for every part that can be compromised. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as abis from "@working-contracts/protocol/abi";
import { expect, test } from "vitest";
import { ROOT } from "../../../src/root.js";

const text = readFileSync(join(ROOT, "SECURITY.md"), "utf8");
const rowsUnder = (heading: string): string[][] =>
  (text.split(`${heading} |\n`)[1] ?? "")
    .split("\n\n", 1)[0]
    ?.split("\n")
    .slice(1)
    .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, ""))) ?? [];
const powers = rowsUnder("| Compromised | Can | Cannot");
const shown = rowsUnder("| Compromised | Shown by");

/** An agent's private key can do everything that the agent can. */
test("every part but the agent's private key has tests", () => {
  const plain = (name = "") => name.replace(/ \(.*\)$/, "");
  const parts = powers.map(([name]) => plain(name)).filter((name) => name !== "agent's private key");
  expect(parts.length).toBeGreaterThan(10);
  expect(shown.map(([name]) => name)).toEqual(parts);
});

test.each(shown)("the tests of %s exist", (_, tests = "") => {
  for (const reference of tests.split("; ")) {
    const [, path = "", title = ""] = /^`([^`]+)`: (.+)$/.exec(reference) ?? [];
    const source = readFileSync(join(ROOT, "test", path), "utf8");
    for (const part of title.split(" > ")) expect(source, reference).toContain(part);
  }
});

/** None upgrades, pauses or sweeps, and the Relay's owner gets no power of a signer. */
const CHANGING = `
  delegationAbi: register revoke
  escrowAbi: accept approve cancel cancelSignatures claim claimDeferred decline deliver dispute draw open openVote
    refundDirectTransfer settle tally vote withDirectTransfer withSignature withdraw
  factoryAbi: acceptOwnership create deploy renounceOwnership setParameters setReviewer setTreasury transferOwnership
  protocolTokenAbi: acceptOwnership applyRaise approve cancelAuthorization cancelAuthorization grant mintGrant
    mintReward openTransfers permit receiveWithAuthorization receiveWithAuthorization renounceOwnership setDailyCap
    transfer transferFrom transferOwnership transferWithAuthorization transferWithAuthorization
  registryAbi: cancelSignatures lockForVote requestUnstake stake withSignature withdrawStake
  relayAbi: acceptOwnership execute register renounceOwnership revoke setSigner transferOwnership`;

test("no contract has a function that changes state besides these", () => {
  const { testUsdAbi: _, ...ours } = abis;
  const changing = Object.entries(ours)
    .sort()
    .flatMap(([name, abi]) => [
      `${name}:`,
      ...abi.flatMap((item) =>
        item.type === "function" && !/view|pure/.test(item.stateMutability) ? [item.name] : [],
      ),
    ]);
  expect(changing).toEqual(CHANGING.trim().split(/\s+/));
});
