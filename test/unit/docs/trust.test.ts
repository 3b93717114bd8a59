import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { report } from "../../../tools/economics.js";

it("docs/trust.md has the tables of npm run economics", () => {
  const text = readFileSync(new URL("../../../docs/trust.md", import.meta.url), "utf8");
  for (const table of report().split("\n\n")) expect(text).toContain(table);
});
