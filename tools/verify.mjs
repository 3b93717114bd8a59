/** `npm run verify`: the checks, then the tests. A failed check counts as a failure in the closing line. */
import { runChecks } from "./check.mjs";
import { ensureInstalled } from "./install.mjs";
import { closingLine, runTests } from "./test.mjs";

await ensureInstalled();
const failedChecks = await runChecks();
const { passed, failed } = await runTests();
console.log(`\n${closingLine({ passed, failed: failed + failedChecks })}`);
process.exit(failed + failedChecks === 0 ? 0 : 1);
