/** Figures in the documentation match the last gas measurements and the reports. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { report } from "../../../tools/economics.js";

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

it.each(["lifecycle", "hundred-voters"])("docs/gas.md has every figure of %s.json", (snapshot) => {
  const figures: Record<string, string> = JSON.parse(read(`test/contracts/snapshots/${snapshot}.json`));
  const text = read("docs/gas.md");
  for (const [name, gas] of Object.entries(figures)) {
    expect(text, name).toContain(Number(gas).toLocaleString("en-US"));
  }
});

it("docs/trust.md has the tables of npm run economics", () => {
  const text = read("docs/trust.md");
  for (const table of report().split("\n\n")) expect(text).toContain(table);
});
