/** `npm test`: all suites, one after another, and one closing line that adds them up. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureInstalled } from "./install.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/**
 * Stages run one after another, the lanes of a stage side by side, the suites of a lane one after another. The
 * contracts come first: every later suite deploys what they compile.
 */
const STAGES = [
  [["contracts"], ["unit"]],
  [["integration"], ["e2e"], ["conformance", "browser"]],
];

/** Runs all suites; a suite that breaks off counts as one failure more. */
export async function runTests() {
  const total = { passed: 0, failed: 0 };
  for (const lanes of STAGES) {
    for (const { passed, failed } of (await Promise.all(lanes.map(runLane))).flat()) {
      total.passed += passed;
      total.failed += failed;
    }
  }
  return total;
}

async function runLane(names) {
  const results = [];
  for (const name of names) {
    console.log(`   ${name}: running`);
    const startedAt = Date.now();
    const { output, passed, failed } = name === "contracts" ? await runForge() : await runVitest(name);
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    console.log(
      `\n== ${name}\n${output.trim()}\n   ${name}: ${passed} passed, ${failed} failed (${seconds} s)`,
    );
    results.push({ passed, failed });
  }
  return results;
}

export function closingLine({ passed, failed }) {
  return `${passed} passed, ${failed} failed`;
}

async function runForge() {
  const { code, stdout, stderr } = await run("forge", ["test", "--json"]);
  const counts = { output: "", passed: 0, failed: 0 };
  let suites;
  try {
    suites = JSON.parse(stdout.slice(stdout.indexOf("{")));
  } catch {
    return { output: `${stdout}${stderr}`, passed: 0, failed: 1 };
  }
  for (const [suite, { test_results: results }] of Object.entries(suites)) {
    for (const [test, { status, reason }] of Object.entries(results)) {
      if (status === "Success") counts.passed++;
      if (status !== "Failure") continue;
      counts.failed++;
      counts.output += `   FAIL ${suite} ${test}: ${reason ?? "no reason given"}\n`;
    }
  }
  if (code !== 0 && counts.failed === 0) return { ...counts, output: stderr, failed: 1 };
  return counts;
}

async function runVitest(name) {
  const dir = mkdtempSync(join(tmpdir(), "vitest-report-"));
  const report = join(dir, "report.json");
  try {
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const { code, stdout, stderr } = await run("vitest", ["run", "--project", name, ...reporters]);
    return { output: `${stdout}${stderr}`, ...countVitest(report, code) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
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

/** Lanes run side by side, so each suite's output is kept until it ends. */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(join(ROOT, "node_modules/.bin", command), args, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const chunks = { stdout: [], stderr: [] };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => chunks[name].push(chunk));
    const text = (name) => Buffer.concat(chunks[name]).toString("utf8");
    const end = (code) => resolve({ code, stdout: text("stdout"), stderr: text("stderr") });
    child.once("error", (error) => resolve({ code: 1, stdout: "", stderr: error.message }));
    child.once("close", end);
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled();
  const total = await runTests();
  console.log(`\n${closingLine(total)}`);
  process.exit(total.failed === 0 ? 0 : 1);
}
