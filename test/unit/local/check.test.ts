import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { ROOT } from "../../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { runLane } from "../../../tools/check.mjs";

it("a check that throws is reported and counted, and the others run", async () => {
  const log = vi.spyOn(console, "log").mockReturnValue();
  const broken = async () => {
    throw new Error("not a git repository");
  };
  expect(await runLane({ broken, "another check": async () => null })).toBe(1);
  expect(log.mock.calls).toEqual([["FAIL  broken\nnot a git repository"], ["ok    another check"]]);
  log.mockRestore();
});

it("a deleted document does not end the check of the prose", () => {
  const dir = mkdtempSync(join(tmpdir(), "prose-test-"));
  mkdirSync(join(dir, "tools"));
  for (const file of ["prose.mjs", "run.mjs"])
    copyFileSync(join(ROOT, "tools", file), join(dir, "tools", file));
  writeFileSync(join(dir, "NOTES.md"), "A note.");
  for (const args of [
    ["init", "--quiet"],
    ["add", "NOTES.md"],
  ])
    execFileSync("git", args, { cwd: dir });
  rmSync(join(dir, "NOTES.md"));
  expect(execFileSync("node", [join(dir, "tools/prose.mjs")], { encoding: "utf8" })).toBe("");
  rmSync(dir, { recursive: true });
});
