import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSpendingLedger } from "@working-contracts/cli/files";
import { SpendingLimitError } from "@working-contracts/client/index";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runProgram } from "../../support/programs.js";

let dir: string;
let path: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ledger-"));
  path = join(dir, "spent.json");
});
afterEach(() => rmSync(dir, { recursive: true }));

const caps = { perCall: 10_000_000n, perDay: 25_000_000n };
const payment = (units: bigint, currency: "stablecoin" | "protocol-token" = "stablecoin") => ({
  amount: units,
  decimal: String(units),
  currency,
  resource: "POST /v1/contracts",
  payTo: "0x",
  role: "Worker" as const,
  token: "0x",
});
const ledgerOn = (day: string) => createSpendingLedger(path, caps, () => new Date(`${day}T12:00:00Z`));

it("rejects a call above its cap, and counts nothing for it", () => {
  const ledger = ledgerOn("2026-01-30");
  expect(() => ledger.count(payment(10_000_001n))).toThrow("10.0 per call");
  expect(ledger.spentToday()).toBe(0n);
});

it("keeps the day's sum over restarts, and starts from zero the next day", () => {
  ledgerOn("2026-01-30").count(payment(10_000_000n));
  ledgerOn("2026-01-30").count(payment(10_000_000n));
  expect(() => ledgerOn("2026-01-30").count(payment(5_000_001n))).toThrow("25.0 per day");
  ledgerOn("2026-01-30").count(payment(5_000_000n));
  ledgerOn("2026-01-31").count(payment(10_000_000n));
  expect(ledgerOn("2026-01-31").spentToday()).toBe(10_000_000n);
});

it("does not count protocol tokens, which are not money", () => {
  const ledger = ledgerOn("2026-01-30");
  ledger.count(payment(10n ** 21n, "protocol-token"));
  expect(ledger.spentToday()).toBe(0n);
});

it("keeps the day's sum if the clock is set back", () => {
  ledgerOn("2026-01-30").count(payment(10_000_000n));
  ledgerOn("2026-01-30").count(payment(10_000_000n));
  expect(() => ledgerOn("2026-01-29").count(payment(5_000_001n))).toThrow("25.0 per day");
  expect(() => ledgerOn("2026-01-29").count(payment(5_000_001n))).toThrow("counts for 2026-01-30");
  ledgerOn("2026-01-29").count(payment(5_000_000n));
  expect(() => ledgerOn("2026-01-30").count(payment(1n))).toThrow("25.0 per day");
});

it.each(["much", "-1.0", "1.0000001", 5])("allows nothing if its file says %j", (spent) => {
  writeFileSync(path, JSON.stringify({ day: "2026-01-30", spent }));
  expect(() => ledgerOn("2026-01-30").count(payment(1n))).toThrow("Repair or delete it");
});

it.each(["", "{", "[]", '{"spent":"1.0"}', '{"day":"yesterday","spent":"1.0"}'])(
  "allows nothing if its file is %j",
  (text) => {
    writeFileSync(path, text);
    expect(() => ledgerOn("2026-01-30").count(payment(1n))).toThrow("Repair or delete it");
    expect(readFileSync(path, "utf8")).toBe(text);
  },
);

it("makes its file readable only by its owner, and leaves no lock behind", () => {
  const ledger = ledgerOn("2026-01-30");
  ledger.count(payment(10_000_000n));
  ledger.count(payment(10_000_000n));
  expect(() => ledger.count(payment(10_000_000n))).toThrow(SpendingLimitError);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir)).toEqual(["spent.json"]);
});

it("allows nothing while another process holds its lock", () => {
  writeFileSync(`${path}.lock`, "");
  expect(() => ledgerOn("2026-01-30").count(payment(1n))).toThrow("spent.json.lock is held");
  expect(ledgerOn("2026-01-30").spentToday()).toBe(0n);
});

it("enforces the day's cap across many processes at once", { timeout: 120_000 }, async () => {
  const outputs = await Promise.all(
    Array.from({ length: 3 }, () => runProgram("test/unit/mcp/spender.ts", [path])),
  );
  const counted = outputs.map(({ stdout, stderr }) => {
    expect(stderr).toBe("");
    return Number(stdout);
  });
  expect(counted.reduce((sum, one) => sum + one, 0)).toBe(25);
});
