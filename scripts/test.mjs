/** `npm test`: all suites, one after another, and one closing line that adds them up. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureInstalled } from "./install.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST_PROJECTS = ["unit", "integration", "e2e"];

/** Runs all suites; a suite that breaks off counts as one failure more. */
export async function runTests() {
  const total = { passed: 0, failed: 0 };
  for (const suite of [{ name: "contracts", run: runForge }, ...VITEST_PROJECTS.map(vitestSuite)]) {
    console.log(`\n== ${suite.name}`);
    const startedAt = Date.now();
    const { passed, failed } = await suite.run();
    console.log(
      `   ${suite.name}: ${passed} passed, ${failed} failed (${Math.round((Date.now() - startedAt) / 1000)} s)`,
    );
    total.passed += passed;
    total.failed += failed;
  }
  return total;
}

export function closingLine({ passed, failed }) {
  return `${passed} passed, ${failed} failed`;
}

async function runForge() {
  const { code, stdout } = await run("forge", ["test", "--json"], { capture: true });
  const counts = { passed: 0, failed: 0 };
  let suites;
  try {
    suites = JSON.parse(stdout.slice(stdout.indexOf("{")));
  } catch {
    console.log(stdout);
    return { passed: 0, failed: 1 };
  }
  for (const [suite, { test_results: results }] of Object.entries(suites)) {
    for (const [test, { status, reason }] of Object.entries(results)) {
      if (status === "Success") counts.passed++;
      if (status !== "Failure") continue;
      counts.failed++;
      console.log(`   FAIL ${suite} ${test}: ${reason ?? "no reason given"}`);
    }
  }
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  return counts;
}

function vitestSuite(name) {
  return {
    name,
    async run() {
      const dir = mkdtempSync(join(tmpdir(), "vitest-report-"));
      const report = join(dir, "report.json");
      try {
        const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
        const { code } = await run("vitest", ["run", "--project", name, ...reporters]);
        return countVitest(report, code);
      } finally {
        rmSync(dir, { recursive: true, force: true });
      }
    },
  };
}

function countVitest(report, code) {
  let json;
  try {
    json = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return { passed: 0, failed: 1 };
  }
  // A file that does not even load has no failed test of its own.
  const broken = json.testResults.filter(
    ({ status, assertionResults }) =>
      status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  ).length;
  const failed = json.numFailedTests + broken;
  return { passed: json.numPassedTests, failed: code !== 0 && failed === 0 ? 1 : failed };
}

function run(command, args, { capture = false } = {}) {
  return new Promise((resolve) => {
    const child = spawn(join(ROOT, "node_modules/.bin", command), args, {
      cwd: ROOT,
      stdio: ["ignore", capture ? "pipe" : "inherit", "inherit"],
    });
    const chunks = [];
    child.stdout?.on("data", (chunk) => chunks.push(chunk));
    const end = (code) => resolve({ code, stdout: Buffer.concat(chunks).toString("utf8") });
    child.once("error", () => end(1));
    child.once("close", end);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled();
  const total = await runTests();
  console.log(`\n${closingLine(total)}`);
  process.exit(total.failed === 0 ? 0 : 1);
}
