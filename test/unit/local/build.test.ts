/** A small repository whose programs the copied script builds. */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT } from "../../../src/root.js";
import { runProcess } from "../../support/run-process.js";

const dir = mkdtempSync(join(tmpdir(), "build-"));
afterAll(() => rmSync(dir, { recursive: true }));
const LONG_AGO = new Date(0);
const SERVE = "src/commands/serve.ts";
const INSTALLED = "node_modules/.package-lock.json";

function write(path: string, text: string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), text);
  // An unpacked release can be older than what was built before.
  utimesSync(join(dir, path), LONG_AGO, LONG_AGO);
}

beforeAll(() => {
  const commands = ["serve", "indexer", "migrate", "operator"].map((name) => `src/commands/${name}.ts`);
  const packages = ["protocol/src/index.ts", "client/src/index.ts", "cli/src/main.ts"];
  const entries = [
    ...packages.map((path) => `packages/${path}`),
    "src/pages/wallet/main.ts",
    "tools/local/main.ts",
  ];
  for (const path of [...commands, ...entries]) write(path, "export const is = 1;");
  write(INSTALLED, "{}");
  symlinkSync(join(ROOT, "node_modules/esbuild"), join(dir, "node_modules/esbuild"));
  for (const name of ["build.mjs", "run.mjs"])
    copyFileSync(join(ROOT, "tools", name), join(dir, "tools", name));
});

/** What `serve` prints after a build, and when it was written. */
async function built(): Promise<{ prints: string; at: number }> {
  expect(await runProcess("node", ["tools/build.mjs"], { cwd: dir })).toMatchObject({ code: 0, stderr: "" });
  const { stdout } = await runProcess("node", ["dist/service/serve.mjs"], { cwd: dir });
  return { prints: stdout, at: statSync(join(dir, "dist/service/serve.mjs")).mtimeMs };
}

it("builds programs again if their sources or the installed packages have changed, whatever their times", async () => {
  write(SERVE, 'console.log("first");');
  const first = await built();
  expect(first.prints).toBe("first\n");

  utimesSync(join(dir, SERVE), new Date(), new Date());
  expect(await built()).toEqual(first);

  write(SERVE, 'console.log("other");');
  const second = await built();
  expect(second.prints).toBe("other\n");

  write(INSTALLED, '{ "packages": {} }');
  expect((await built()).at).toBeGreaterThan(second.at);
});
