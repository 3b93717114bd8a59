/** `npm run test:nightly`: the money law over at least 100,000 random histories per test, and longer invariant runs. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

const MONEY = "test/contracts/{conservation,invariant,libraries}/**";

await ensureInstalled();
const money = test(["--match-path", MONEY], { FOUNDRY_PROFILE: "nightly" });
const others = test(["--no-match-path", MONEY], { FOUNDRY_FUZZ_RUNS: "1000" });
process.exit(money || others);

function test(args, env) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const { status } = spawnSync(`${root}node_modules/.bin/forge`, ["test", ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  return status ?? 1;
}
