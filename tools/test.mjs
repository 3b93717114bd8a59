/** `npm test`: runs all suites; `--checks` (`npm run verify`) runs the checks beside them and counts their failures. */
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { startChecks } from "./check.mjs";
import { ensureClients, ensureInstalled } from "./install.mjs";
import { ROOT, runForge, runVitest } from "./run.mjs";

/** At most four: each part starts its own stack or database, which take memory. */
const PARTS = Math.min(availableParallelism(), 4);
/** The suite in parts, each of which has a share of its files. */
const inParts = (name) =>
  Array.from({ length: PARTS }, (_, i) => ({
    name: `${name} ${i + 1}/${PARTS}`,
    args: [`--shard=${i + 1}/${PARTS}`],
  }));

/** Integration tests that start an indexer, or many programs and nodes; the others mostly wait. */
const BUSY = ["base-dry-run", "deployment-page", "event-log", "indexer-lifecycle", "keeper-lifecycle"]
  .concat(["protocol-differential", "start"])
  .map((name) => `test/integration/${name}.test.ts`);

/** With more side by side, tests wait for a processor, and stacks and polls take more processor time altogether. */
const PLACES = availableParallelism() + 1;
/**
 * Suites in the order in which they start. `after` names what has to have ended: the integration tests deploy contracts
 * of the tests' own from `out/`, and one of them runs the stock x402 clients. The busy ones are one suite, because two
 * of their files would look for the same free ports at the same moment.
 */
const SUITES = [
  { name: "unit" },
  ...inParts("e2e"),
  { name: "contracts", after: ["contract checks"] },
  { name: "integration (waiting)", args: BUSY.map((file) => `--exclude=${file}`), after: ["contracts"] },
  { name: "integration (busy)", args: BUSY, after: ["contracts", "clients"] },
  { name: "browser" },
  { name: "conformance" },
];

/** Lines of each failure's message, and characters of each line, that are repeated at the end of the run. */
const MESSAGE_LINES = 12;
const MESSAGE_LINE_LENGTH = 1200;

/** Runs all suites, then lists failures; a crash counts as one. `before`: promises that suites wait for, by name. */
async function runTests(before) {
  const clients = ensureClients().then(
    () => null,
    (error) => error.message,
  );
  const running = new Map(Object.entries({ ...before, clients }));
  const results = [];
  const waiting = [...SUITES];
  const place = async () => {
    for (let suite = waiting.shift(); suite !== undefined; suite = waiting.shift()) {
      const { name, after = [] } = suite;
      const result = Promise.all(after.map((other) => running.get(other))).then(() => runSuite(suite));
      running.set(name, result);
      results.push(await result);
    }
  };
  await Promise.all(Array.from({ length: PLACES }, place));
  const notInstalled = await clients;
  if (notInstalled !== null)
    results.push({ ...NOTHING, failed: 1, failures: [`   clients: ${notInstalled}`] });
  const failures = results.flatMap((result) => result.failures);
  if (failures.length > 0) console.log(`\n== failed\n${failures.join("\n")}`);
  const sum = (key) => results.reduce((total, result) => total + result[key], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

/** Suites run in parallel, so each one's output is held back until it ends. */
async function runSuite({ name, args = [] }) {
  console.log(`   ${name}: running`);
  const startedAt = Date.now();
  const result = name === "contracts" ? await testContracts() : await testSuite(name.split(" ")[0], args);
  const { output, failures, ...counts } = result;
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  console.log(`\n== ${name}\n${output.trim()}\n   ${name}: ${closingLine(counts)} (${seconds} s)`);
  return { ...counts, failures: failures.map((failure) => `   ${name}: ${failure}`) };
}

/** A skipped test lacks something that this machine does not have and could not install. */
function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

const NOTHING = { passed: 0, failed: 0, skipped: 0 };
const CRASHED = { ...NOTHING, failed: 1, failures: ["crashed; see its output"] };

async function testContracts() {
  const { code, stdout, stderr, tests } = await runForge([]);
  if (tests === null) return { ...CRASHED, output: `${stdout}${stderr}` };
  const withStatus = (wanted) => tests.filter(({ status }) => status === wanted);
  const failures = withStatus("Failure").map(
    ({ suite, name, reason }) => `${suite} ${name}: ${reason ?? "no reason given"}`,
  );
  const passed = withStatus("Success").length;
  const skipped = withStatus("Skipped").length;
  if (tests.length === 0 || (code !== 0 && failures.length === 0))
    return { ...CRASHED, passed, output: stderr };
  return { output: "", passed, failed: failures.length, skipped, failures };
}

async function testSuite(project, args) {
  const { code, stdout, stderr, report } = await runVitest([
    ...["--project", project, "--reporter=default"],
    ...args,
  ]);
  const output = `${stdout}${stderr}`;
  if (report === null) return { ...CRASHED, output };
  const failures = report.testResults.flatMap((file) => failuresOf(file));
  if (code !== 0 && failures.length === 0) {
    failures.push(`ended with exit code ${code}\n${shortened(errorOutsideTests(output))}`);
  }
  const { numPassedTests: passed, numPendingTests: skipped } = report;
  return { output, passed, failed: failures.length, skipped, failures };
}

/** Vitest's report of an error outside any test, as in a project's setup; otherwise the end of its output. */
function errorOutsideTests(output) {
  const lines = stripVTControlCharacters(output).trim().split("\n");
  const start = lines.findIndex((line) => /(Unhandled|Startup) .*(Error|Rejection)/.test(line));
  return lines.slice(start === -1 ? -MESSAGE_LINES : start).join("\n");
}

/** A file that does not load has no failed tests; it counts as one failure. */
function failuresOf({ name, status, message, assertionResults }) {
  const file = relative(ROOT, name);
  const failed = assertionResults.filter((test) => test.status === "failed");
  if (failed.length === 0) return status === "failed" ? [`${file}\n${shortened(message)}`] : [];
  return failed.map(({ fullName, failureMessages }) => {
    return `${file}: ${fullName}\n${shortened(failureMessages.join("\n"))}`;
  });
}

function shortened(message) {
  const lines = message.split("\n").slice(0, MESSAGE_LINES);
  return lines.map((line) => `      ${line.slice(0, MESSAGE_LINE_LENGTH)}`).join("\n");
}

await ensureInstalled();
const checks = process.argv.includes("--checks") ? startChecks() : {};
const tests = runTests({ "contract checks": checks.contracts });
const [total, ...failedChecks] = await Promise.all([tests, ...Object.values(checks)]);
total.failed += failedChecks.reduce((sum, count) => sum + count, 0);
console.log(`\n${closingLine(total)}`);
process.exit(total.failed === 0 ? 0 : 1);
