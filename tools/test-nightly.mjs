/** `npm run test:nightly`: long random histories, 10 million invariant calls, other clients, 100,000 requests. */
import { join } from "node:path";
import { ensureInstalled } from "./install.mjs";
import { ROOT, runBin } from "./run.mjs";

const MONEY = "test/contracts/{conservation,invariant,libraries}/**";
const COVERAGE = ["--match-test", "test_HistoriesReach", "--gas-report", "--gas-limit", "1000000000000"];
const TSC_5 = join(ROOT, "node_modules/typescript/bin/tsc");
const RUNS = [
  ["forge", ["test", ...COVERAGE], {}],
  ["forge", ["test", "--match-path", MONEY], { FOUNDRY_PROFILE: "nightly" }],
  ["forge", ["test", "--no-match-path", MONEY], { FOUNDRY_FUZZ_RUNS: "1000" }],
  ["vitest", ["run", "--project", "nightly"], {}],
  ["vitest", ["run", "--project", "integration", "protocol-differential"], { DIFFERENTIAL_SCALE: "8" }],
  ["vitest", ["run", "--project", "e2e", "test/e2e/packages.test.ts"], { PACKAGES_TSC: TSC_5 }],
  ["vitest", ["run", "--project", "conformance", "test/conformance/edge"], { EDGE_REQUESTS: "100000" }],
];

await ensureInstalled();
for (const [command, args, env] of RUNS) {
  const { code } = await runBin(command, args, { env, stdio: "inherit" });
  if (code !== 0) process.exitCode = 1;
}
