/** `npm run verify`: the checks and the tests. A failed check counts as a failure in the closing line. */
import { startChecks } from "./check.mjs";
import { ensureInstalled } from "./install.mjs";
import { closingLine, runTests } from "./test.mjs";

await ensureInstalled();
const checks = startChecks();
const tests = runTests({ "contract checks": checks.contracts });
const [total, ...failedChecks] = await Promise.all([tests, ...Object.values(checks)]);
total.failed += failedChecks.reduce((sum, count) => sum + count, 0);
console.log(`\n${closingLine(total)}`);
process.exit(total.failed === 0 ? 0 : 1);
