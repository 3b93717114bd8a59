import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { expect, it } from "vitest";
import { parseConfig } from "../../../src/config.js";
import * as schema from "../../../src/db/schema.js";
import { ROOT } from "../../../src/root.js";
import { worstGas } from "../../support/worst-gas.js";

const page = readFileSync(join(ROOT, "docs/limits.md"), "utf8");
const rowsUnder = (heading: string): string[][] =>
  (page.split(heading)[1] ?? "")
    .split("\n\n", 1)[0]
    ?.split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim())) ?? [];
const number = (text = ""): number => Number(text.replaceAll(",", ""));

it("the page about limits says what an attacker can cost at the default settings", () => {
  const { gasLimits, rateLimits } = parseConfig({
    DATABASE_URL: "postgres://localhost",
    RPC_URL: "http://localhost",
    DEPLOYMENT: "deployment.json",
    MASTER_KEY: "11".repeat(32),
  });
  const rows = rowsUnder("addresses a minute.\n\n");
  expect(rows.length).toBeGreaterThan(3);
  for (const [, addresses, clients, gas, cost] of rows) {
    const worst = worstGas(gasLimits, {
      addresses: number(addresses),
      clients: number(clients),
      hours: 24,
      challengesPerMinute: rateLimits.challenges,
    });
    expect([addresses, clients, number(gas)]).toEqual([addresses, clients, worst]);
    expect(number(cost)).toBeCloseTo(worst * 0.01e-9 * 3000, 2);
  }
  for (const limit of Object.values(gasLimits)) expect(page).toContain(limit.toLocaleString("en"));
});

it("the page about limits has every table of the service, and no other", () => {
  const tables = Object.values(schema).flatMap((table) =>
    table instanceof PgTable ? [getTableConfig(table).name] : [],
  );
  const named = rowsUnder("500 rows of a table each.\n\n").flatMap(([, names = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(named.sort()).toEqual(tables.sort());
});
