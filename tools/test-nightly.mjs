/**
 * `npm run test:nightly`: the money law over at least 100,000 random histories per test, longer invariant runs, and what
 * needs more than Node.js: a client in another language.
 */
import { ensureInstalled } from "./install.mjs";
import { runBin } from "./run.mjs";

const MONEY = "test/contracts/{conservation,invariant,libraries}/**";
const RUNS = [
  ["forge", ["test", "--match-path", MONEY], { FOUNDRY_PROFILE: "nightly" }],
  ["forge", ["test", "--no-match-path", MONEY], { FOUNDRY_FUZZ_RUNS: "1000" }],
  ["vitest", ["run", "--project", "nightly"], {}],
];

await ensureInstalled();
for (const [command, args, env] of RUNS) {
  const { code } = await runBin(command, args, { env, stdio: "inherit" });
  if (code !== 0) process.exitCode = 1;
}
