/** SECURITY.md names an existing test for every part that can be compromised. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
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
