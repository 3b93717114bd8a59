/** `npm run test:nightly`: the money law over at least 100,000 random histories per test, and longer invariant runs. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

const SUITES = "test/contracts/{conservation,invariant,libraries}/**";

await ensureInstalled();
const root = fileURLToPath(new URL("..", import.meta.url));
const { status } = spawnSync(`${root}node_modules/.bin/forge`, ["test", "--match-path", SUITES], {
  cwd: root,
  env: { ...process.env, FOUNDRY_PROFILE: "nightly" },
  stdio: "inherit",
});
process.exit(status ?? 1);
