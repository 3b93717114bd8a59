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
const file = join(ROOT, "test/contracts/snapshots/operations-alone.json");
const measured: Record<string, string> = JSON.parse(readFileSync(file, "utf8"));
const gasOf = (...names: string[]): number => names.reduce((sum, name) => sum + Number(measured[name]), 0);
const number = (text = ""): number => Number(text.replaceAll(",", ""));

it("the page about limits says what an attacker can cost at the default settings", () => {
  const { gasPolicy } = testConfig();
  const rows = rowsUnder("first period counts twice.\n\n");
  expect(rows.length).toBeGreaterThan(3);
  for (const [, addresses, gas, cost] of rows) {
    const worst = worstGas(gasPolicy, { addresses: number(addresses), hours: 24 });
    expect([addresses, number(gas)]).toEqual([addresses, worst]);
    expect(number(cost)).toBeCloseTo(worst * 0.01e-9 * 3000, 2);
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
  expect(page).toContain(`its refund ${gasOf("refund-direct-transfer").toLocaleString("en")}.`);
});

it("what a fee earns costs the operator less than the fee, and a contract at 0.30 covers its lifecycle", () => {
  const { perFee } = testConfig().gasPolicy;
  expect(perFee * 0.01e-9 * 3000).toBeLessThan(1);
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
