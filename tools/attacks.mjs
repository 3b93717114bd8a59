/**
 * `npm run test:attacks`: plays known attacks against the service, the client and the contracts, and prints for each what
 * was tried and what it achieved. A test that is missing or fails counts as an attack that succeeds.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What was tried, what it achieves, and the test that shows it. */
const ATTACKS = [
  [
    "a service relays another service's sign-in challenge",
    "no signature",
    "test/e2e/sdk.test.ts",
    "gets no sign-in",
  ],
  [
    "a service whose clock is ahead asks for an authorization without an end",
    "one that ends with the terms, or in ten minutes",
    "test/e2e/sdk.test.ts",
    "whose clock is ahead gets no payment that outlives the terms",
  ],
  [
    "a wallet accepts its signature only in simulations",
    "nothing is sent",
    "test/integration/relayer-wallets.test.ts",
    "that accepts only at gas price 0 costs no gas",
  ],
  [
    "a wallet accepts its signature in every simulation, but not on chain",
    "the gas of one operation",
    "test/integration/relayer-wallets.test.ts",
    "that passes every simulation and fails on chain costs one operation's gas",
  ],
  [
    "an account becomes a contract wallet only while its batch is executed",
    "the gas of one operation",
    "test/integration/relayer-wallets.test.ts",
    "costs one operation's gas, and gets no second try",
  ],
  [
    "a wallet that lied signs actions and delegations beyond the budget",
    "nothing, until it is within the limits",
    "test/e2e/contract-interrupted.test.ts",
    "refuse a contract wallet whose newest signature failed what it signs",
  ],
  [
    "hundreds of addresses pay at the same moment",
    "the gas budget of an hour",
    "test/integration/gas-accounts.test.ts",
    "hold for addresses that all pay at the same moment",
  ],
  [
    "a node names an absurd tip",
    "the tip's cap",
    "test/unit/relayer/transaction.test.ts",
    "never tip more than their cap, whatever the node says",
  ],
  [
    "a payer has the node searched for payments that it cancelled",
    "one long search in 30 seconds",
    "test/e2e/authorization-use.test.ts",
    "a payer's long searches that find no use run one at a time",
  ],
  [
    "one address creates and cancels in a loop",
    "its allowance of gas a day",
    "test/e2e/contract-interrupted.test.ts",
    "stop an address that creates and cancels in a loop",
  ],
  [
    "new addresses create, delegate, decline and revoke in a loop",
    "the gas budget of an hour",
    "test/e2e/contract-interrupted.test.ts",
    "stop new addresses that delegate, decline and revoke in a loop",
  ],
  [
    "large checkpoints make an anonymous list huge",
    "16 MiB per contract, four lists at a time",
    "test/e2e/checkpoints.test.ts",
    "bounds the bytes of a contract's checkpoints",
  ],
  [
    "unpaid quotes store texts",
    "40 minutes, visible to their caller",
    "test/e2e/unpaid-texts.test.ts",
    "drops the texts of an attempt",
  ],
  [
    "one client takes all event streams",
    "one twentieth of them",
    "test/e2e/events.test.ts",
    "leaves room for parties, however many addresses",
  ],
  [
    "hundreds of webhooks hang",
    "their own lane",
    "test/e2e/webhooks.test.ts",
    "keeps half of its capacity for targets that respond",
  ],
  [
    "SIGTERM to npm leaves the network running",
    "nothing: all of it stops",
    "test/integration/start.test.ts",
    "stops everything when npm ends by SIGTERM",
  ],
  [
    "a flood of requests with one key",
    "one lookup",
    "test/integration/auth-keys.test.ts",
    "looks a key up once for a flood of requests",
  ],
  [
    "the token's owner packs a jury",
    "no seat in contracts that are matched",
    "test/e2e/trust.test.ts",
    "cannot pack the jury of a contract that is already matched",
  ],
  [
    "agents dispute among themselves to mint rewards",
    "rewards for what the Treasury gets",
    "test/contracts/claim/claim.t.sol",
    "test_GivenLowPrice_CapsRewardsByWhatTheTreasuryGets",
  ],
  [
    "searches look through every text",
    "20,000 rows a page, four searches at a time",
    "test/e2e/list-cost.test.ts",
    "a page looks at a bounded number of rows",
  ],
  [
    "large texts make a page of contracts huge",
    "1 MiB and one contract",
    "test/e2e/list-cost.test.ts",
    "a page ends at a bounded length of texts",
  ],
  [
    "one client reads none of its responses",
    "16 MiB of memory",
    "test/unit/http/middleware/rate-limit.test.ts",
    "are limited by what a client has left to read",
  ],
  [
    "addresses of one client fill the queue of searches",
    "a place behind everyone else's first",
    "test/unit/services/slots.test.ts",
    "never the first of a client",
  ],
  [
    "made-up API keys are looked up in the database",
    "as many lookups as one agent's reads",
    "test/unit/http/middleware/rate-limit.test.ts",
    "with made-up keys read nothing beyond a limit",
  ],
  [
    "one client signs in with the keys of many addresses",
    "the limit of its IP address",
    "test/unit/http/middleware/rate-limit.test.ts",
    "to sign in are limited per client",
  ],
  [
    "strangers' webhooks want every event",
    "2,000 webhooks",
    "test/e2e/webhooks.test.ts",
    "for events of others is for parties and stakers only",
  ],
  [
    "checkpoints fill the disk",
    "bytes a day in proportion to the locked price",
    "test/e2e/checkpoints.test.ts",
    "can fill the disk no faster than its price allows",
  ],
  [
    "a reset chain has the same id and addresses",
    "no start",
    "test/e2e/wrong-settings.test.ts",
    "a chain that was reset",
  ],
  [
    "strangers open thousands of due escrows",
    "1,000 rows of each kind a round",
    "test/e2e/query-plans.test.ts",
    "walks a bounded part of the due escrows of strangers",
  ],
  [
    "a token moves less than was authorized",
    "no match",
    "test/contracts/accept/accept.t.sol",
    "test_RevertWhen_TokenTakesFeeFromAuthorization",
  ],
];

await ensureInstalled();
const passed = [...runVitest(), ...runForge()];
const rows = ATTACKS.map(([tried, achieved, file, title]) => {
  const found = passed.filter((test) => test.file === file && test.name.includes(title));
  const isHeld = found.length > 0 && found.every((test) => test.passed);
  return { tried, achieved: isHeld ? achieved : found.length === 0 ? "NOT PLAYED" : "SUCCEEDS", isHeld };
});
console.log("\n| attack | achieves |\n| --- | --- |");
for (const { tried, achieved } of rows) console.log(`| ${tried} | ${achieved} |`);
const held = rows.filter(({ isHeld }) => isHeld).length;
console.log(`\n${held} of ${rows.length} attacks fail.`);
process.exit(held === rows.length ? 0 : 1);

function runVitest() {
  const tests = ATTACKS.filter(([, , file]) => file.endsWith(".ts"));
  const titles = tests.map(([, , , title]) => title.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const folder = mkdtempSync(join(tmpdir(), "attacks-"));
  const report = join(folder, "report.json");
  const projects = [...new Set(tests.map(([, , file]) => file.split("/")[1]))];
  run("vitest", [
    "run",
    ...projects.flatMap((project) => ["--project", project]),
    ...new Set(tests.map(([, , file]) => file)),
    "-t",
    titles.join("|"),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
  ]);
  const { testResults } = JSON.parse(readFileSync(report, "utf8"));
  rmSync(folder, { recursive: true });
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "passed" || status === "failed")
      .map(({ fullName, status }) => ({
        file: name.slice(ROOT.length),
        name: fullName,
        passed: status === "passed",
      })),
  );
}

function runForge() {
  const tests = ATTACKS.filter(([, , file]) => file.endsWith(".sol"));
  const names = tests.map(([, , , title]) => title).join("|");
  const { stdout } = run("forge", ["test", "--match-test", names, "--json"], ["inherit", "pipe", "inherit"]);
  const suites = JSON.parse(stdout.slice(stdout.indexOf("{")));
  return Object.entries(suites).flatMap(([suite, { test_results: results }]) =>
    Object.entries(results).map(([name, { status }]) => ({
      file: suite.split(":")[0],
      name,
      passed: status === "Success",
    })),
  );
}

function run(command, args, stdio = "inherit") {
  return spawnSync(join(ROOT, "node_modules/.bin", command), args, {
    cwd: ROOT,
    stdio,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
}
