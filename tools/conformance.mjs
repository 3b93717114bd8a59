/** `npm run conformance`: BASE_URL and other settings as in docs/conformance.md; without one, a stack is started. */
import { basename } from "node:path";
import { ensureInstalled } from "./install.mjs";
import { runVitest } from "./run.mjs";

const REMEDIES = {
  money: "RPC_URL of a local network, or RPC_URL and FUNDER_PRIVATE_KEY",
  tokens: "RPC_URL of a local network",
  clock: "RPC_URL of a local network",
  database: "DATABASE_URL",
  stack: "no BASE_URL, so that the suite can start and stop services itself",
};

await ensureInstalled();
const { BASE_URL } = process.env;
console.log(`Testing ${BASE_URL || "a new stack"} …`);
const { code, report } = await runVitest(["--project", "conformance", ...process.argv.slice(2)], {
  env: { BASE_URL: undefined, ...(BASE_URL ? { CONFORMANCE_URL: BASE_URL } : {}) },
  stdio: ["ignore", "inherit", "inherit"],
});
const total = print(report?.testResults ?? []);
if (report === null || (code !== 0 && total.failed === 0)) console.log("The suite itself crashed.");
process.exitCode = report === null || code !== 0 || total.failed > 0 ? 1 : 0;

function print(files) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  const lacking = new Set();
  // A file can show sentences of other chapters.
  const chapters = new Map();
  for (const file of files.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (file.assertionResults.length === 0 && file.status === "failed") {
      total.failed++;
      console.log(`\n${basename(file.name)}\n  FAILED TO START ${file.message}`);
    }
    for (const result of file.assertionResults) {
      const chapter = result.ancestorTitles.join(" / ");
      chapters.set(chapter, [...(chapters.get(chapter) ?? []), result]);
    }
  }
  for (const [chapter, results] of chapters) {
    console.log(`\n${chapter}`);
    for (const { title, status, failureMessages, meta: { missing = [] } = {} } of results) {
      total[status === "passed" || status === "failed" ? status : "skipped"]++;
      if (status === "passed") console.log(`  pass  ${title}`);
      else if (status === "failed") {
        const message = failureMessages.join("\n").split("\n").slice(0, 6);
        console.log([`  FAIL  ${title}`, ...message].join("\n        "));
      } else {
        for (const ability of missing) lacking.add(ability);
        console.log(`  SKIPPED  ${title} (needs ${missing.join(", ")})`);
      }
    }
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  if (total.skipped > 0) {
    console.log(`NOT TESTED: ${total.skipped} sentences. The suite needs:`);
    for (const ability of lacking) console.log(`  ${ability}: ${REMEDIES[ability]}`);
  }
  return total;
}
