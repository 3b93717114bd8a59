/** docs/faults.md names existing tests and mutants for every row of the fault matrix. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
// @ts-expect-error A plain module for a plain script.
import { MUTANT_NAMES, MUTANTS } from "../../faults/support/mutants.mjs";

const ROOT = resolve(import.meta.dirname, "../../..");
const ROWS = 51;
const text = readFileSync(join(ROOT, "docs/faults.md"), "utf8");
const rows = [...text.matchAll(/^\| (\d+) \|(.*)\|$/gm)].map(([, number, cells = ""]) => {
  const [fault, , tests = "", failsWhen = ""] = cells.split(" | ").map((cell) => cell.trim());
  return { number: Number(number), fault, tests, failsWhen };
});
interface Mutant {
  file: string;
  tests: string;
  edits: [from: string, to: string, file?: string][];
}
const mutants = Object.entries<Mutant>(MUTANTS);

test("every row of the matrix is present", () => {
  const numbers = new Set(rows.map(({ number }) => number));
  expect([...numbers]).toEqual(Array.from({ length: ROWS }, (_, index) => index + 1));
});

test("every row of a table has as many cells as its header", () => {
  for (const [table] of text.matchAll(/^\|.*(?:\n\|.*)*/gm)) {
    const [header = "", ...lines] = table.split("\n");
    for (const line of lines) expect(line.split("|"), line).toHaveLength(header.split("|").length);
  }
});

test("no two mutants have one name", () => {
  expect(MUTANT_NAMES).toHaveLength(mutants.length);
});

test.each(rows)("row $number, $fault: its tests exist", ({ tests, failsWhen }) => {
  expect(failsWhen).not.toBe("");
  for (const reference of tests.split("; ")) {
    if (reference.startsWith("the audit")) continue;
    const [, path = "", titles = ""] = /^`([^`]+)`(?:: (.*))?$/.exec(reference) ?? [];
    expect(path, reference).not.toBe("");
    const file = join(ROOT, "test", `${path}.test.ts`);
    expect(existsSync(file) || existsSync(join(ROOT, "test", path)), reference).toBe(true);
    for (const title of titles.split(", ").filter((one) => one !== "")) {
      expect(readFileSync(file, "utf8"), reference).toContain(title);
    }
  }
});

test("every mutant is named, and every name belongs to a mutant", () => {
  const named = new Set([...text.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, name]) => name));
  expect([...named].sort()).toEqual(Object.keys(MUTANTS).sort());
});

test.each(mutants)("mutant %s finds the text that it changes", (_name, { file, edits, tests }) => {
  for (const [from, , edited = file] of edits) {
    expect(readFileSync(join(ROOT, edited), "utf8").split(from), edited).toHaveLength(2);
  }
  expect(existsSync(join(ROOT, tests))).toBe(true);
});
