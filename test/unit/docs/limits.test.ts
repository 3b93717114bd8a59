import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { expect, it } from "vitest";
import * as schema from "../../../src/db/schema.js";
import {
  carrySigned,
  delegateOperation,
  deliverOperation,
  disputeOperation,
  drawOperation,
  revokeDelegationOperation,
  settleOperation,
  tallyOperation,
} from "../../../src/relayer/operations.js";
import { DEFAULT_OPTIONS } from "../../../src/relayer/relayer.js";
import { MAX_TRANSACTION_GAS } from "../../../src/relayer/transaction.js";
import { ROOT } from "../../../src/root.js";
import { worstGas } from "../../support/worst-gas.js";
import { testConfig } from "../http/fixtures.js";

const page = readFileSync(join(ROOT, "docs/limits.md"), "utf8");
const rowsUnder = (heading: string): string[][] =>
  (page.split(heading)[1] ?? "")
    .split("\n\n", 1)[0]
    ?.split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim())) ?? [];
const snapshotOf = (name: string): Record<string, string> =>
  JSON.parse(readFileSync(join(ROOT, `test/contracts/snapshots/${name}.json`), "utf8"));
const measured = snapshotOf("operations-alone");
const gasOf = (...names: string[]): number => names.reduce((sum, name) => sum + Number(measured[name]), 0);
const number = (text = ""): number => Number(text.replaceAll(",", ""));
const costOf = (gas: number): number => gas * 0.01e-9 * 3000;
/** As the page writes it. */
const written = (value: number, fractionDigits = 0): string =>
  value.toLocaleString("en", {
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  });

it("the page about limits says what an attacker can cost at the default settings", () => {
  const { gasPolicy } = testConfig();
  const rows = rowsUnder("first period counts twice.\n\n");
  expect(rows.length).toBeGreaterThan(3);
  for (const [, addresses, gas, cost] of rows) {
    const worst = worstGas(gasPolicy, { addresses: number(addresses), hours: 24 });
    expect([addresses, number(gas)]).toEqual([addresses, worst]);
    expect(number(cost)).toBeCloseTo(costOf(worst), 2);
  }
  for (const limit of Object.values(gasPolicy)) expect(page).toContain(limit.toLocaleString("en"));
});

it("the page about limits says what can follow an operation that was within the limits, as measured", () => {
  const delegations = ["delegate", "delegate", "revoke-delegation", "revoke-delegation"];
  const ordinary = gasOf(
    ...delegations,
    "deliver",
    "dispute",
    "draw, three seats",
    "tally",
    "settle, tallied",
  );

  /** Longer than a key's signature. */
  const signature = `0x${"11".repeat(100)}` as const;
  const [escrow, caller] = [`0x${"22".repeat(20)}`, `0x${"33".repeat(20)}`] as const;
  const hash = `0x${"44".repeat(32)}` as const;
  const deployment = { relay: caller, delegation: caller, asset: { address: caller } } as Deployment;
  const authorization = { validAfter: 0n, validBefore: 0n, nonce: hash, signature };
  const delivery = { deliveryHash: hash, checkpointsRoot: hash, outcomes: 0, escrow, caller };
  const times = { until: 0, issuedAt: 1, expiresAt: 2 };
  const delegation = delegateOperation({
    deployment,
    agent: caller,
    actions: 1,
    nonce: hash,
    signature,
    ...times,
  });
  const revocation = revokeDelegationOperation({ deployment, agent: caller, challengeId: "" });
  const burnt = [
    ...[delegation, delegation, revocation, revocation],
    carrySigned({ ...deliverOperation(delivery), caller }, { deadline: 1, signature }),
    disputeOperation({ deployment, escrow, caller, authorization }),
    drawOperation({ escrow, seats: 3, onceKey: "" }),
    tallyOperation({ escrow }),
    settleOperation({ escrow }),
  ].reduce((sum, { gasLimit }) => sum + gasLimit, 0);

  const rows = rowsUnder("earlier days began, and left open.\n\n").map(([, , gas]) => number(gas));
  expect(rows).toEqual([ordinary, burnt, gasOf("open-vote, first", "claim")]);

  const inBatch = snapshotOf("operations-in-batch-of-ten");
  const opening = Number(inBatch.create) + Number(inBatch.accept);
  expect(page).toContain(`${written(opening)} gas each in batches`);
  const openedIn = rowsUnder("gas is in billions.\n\n");
  expect(openedIn.map(([, days = ""]) => Number.parseInt(days, 10))).toEqual([1, 30, 365]);
  for (const [, days = "", ...cells] of openedIn) {
    const hours = 24 * Number.parseInt(days, 10);
    const contracts = Math.floor(worstGas(testConfig().gasPolicy, { addresses: 1e6, hours }) / opening);
    const ends = [ordinary, burnt].map((gas) => contracts * gas);
    const expected = ends.flatMap((gas) => [written(gas / 1e9, 1), written(costOf(gas))]);
    expect(cells.slice(0, -1)).toEqual([written(contracts), ...expected]);
  }
  const ofDay = (86_400 / 2) * DEFAULT_OPTIONS.maxInFlight * MAX_TRANSACTION_GAS;
  expect(page.replaceAll("\n", " ")).toContain(
    `at most four batches a block, each of at most ${written(MAX_TRANSACTION_GAS)} gas, are ${written(ofDay / 1e9, 1)} billion (${written(costOf(ofDay))})`,
  );
  expect(page).toContain(`for ${written(gasOf("delegate", "revoke-delegation"))} gas.`);
  expect(page).toContain(`its refund ${gasOf("refund-direct-transfer").toLocaleString("en")}.`);
});

it("what a fee earns costs the operator less than the fee, and a contract at 0.30 covers its lifecycle", () => {
  const { perFee } = testConfig().gasPolicy;
  expect(costOf(perFee)).toBeLessThan(1);
  expect(0.3 * 0.05 * perFee).toBeGreaterThan(
    gasOf("create", "accept", "deliver", "approval and settlement"),
  );
  expect(page.replaceAll("\n", " ")).toContain("a contract at 0.30 covers its own lifecycle.");
});

it("the page about limits has every table of the service, and no other", () => {
  const tables = Object.values(schema).flatMap((table) =>
    table instanceof PgTable ? [getTableConfig(table).name] : [],
  );
  const named = rowsUnder("500 rows of a table at a time.\n\n").flatMap(([, names = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(named.sort()).toEqual(tables.sort());
});
