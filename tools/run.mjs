/** Runs the programs that are installed here, and the tests with their reports. Needs no package itself. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve as resolvePath } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The native compiler by its path: `typescript`, whose API a generator needs, has a `tsc` as well. */
export const TSC = join(ROOT, "node_modules/typescript-native/bin/tsc");

/** Whether Node runs this module. It can be called by a path with symlinks, as in the folder for temporary files of a Mac. */
export const isMain = ({ url }) => url === pathToFileURL(realpathSync(process.argv[1] ?? "")).href;

/** Resolves to the exit code and the output of a program that has ended; with other `stdio` the output is shown instead. */
export function runBin(command, args, { cwd = ROOT, env = {}, stdio = ["ignore", "pipe", "pipe"] } = {}) {
  return new Promise((resolve) => {
    const child = spawn(resolvePath(ROOT, "node_modules/.bin", command), args, {
      cwd,
      stdio,
      env: { ...process.env, ...env },
    });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name]?.setEncoding("utf8").on("data", (chunk) => {
        output[name] += chunk;
      });
    }
    child.once("error", (error) => resolve({ code: 1, stdout: "", stderr: error.message }));
    child.once("close", (code) => resolve({ code, ...output }));
  });
}

/** Runs vitest. `report` is its report in JSON; null if it crashed without one. */
export async function runVitest(args, options) {
  const dir = mkdtempSync(join(tmpdir(), "vitest-report-"));
  try {
    const path = join(dir, "report.json");
    const reporter = ["--reporter=json", `--outputFile.json=${path}`];
    const result = await runBin("vitest", ["run", ...args, ...reporter], options);
    return { ...result, report: parse(() => readFileSync(path, "utf8")) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Runs the tests of the contracts. `tests` is null if forge crashed. */
export async function runForge(args, options) {
  const result = await runBin("forge", ["test", "--json", ...args], options);
  const { stdout } = result;
  const suites = parse(() => stdout.slice(stdout.indexOf("{")));
  const testsOf = ([suite, { test_results: tests }]) =>
    Object.entries(tests).map(([name, { status, reason }]) => ({ suite, name, status, reason }));
  return { ...result, tests: suites && Object.entries(suites).flatMap(testsOf) };
}

function parse(read) {
  try {
    return JSON.parse(read());
  } catch {
    return null;
  }
}
