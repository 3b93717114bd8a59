/**
 * `npm run test:nightly`: the money law over at least 100,000 random histories per test, longer invariant runs, and what
 * needs more than Node.js: a client in another language.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

const MONEY = "test/contracts/{conservation,invariant,libraries}/**";

await ensureInstalled();
const money = test(["--match-path", MONEY], { FOUNDRY_PROFILE: "nightly" });
const others = test(["--no-match-path", MONEY], { FOUNDRY_FUZZ_RUNS: "1000" });
const clients = run("vitest", ["run", "--project", "nightly"]);
process.exit(money || others || clients);

function test(args, env) {
  return run("forge", ["test", ...args], env);
}

function run(tool, args, env = {}) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const { status } = spawnSync(`${root}node_modules/.bin/${tool}`, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  return status ?? 1;
}
