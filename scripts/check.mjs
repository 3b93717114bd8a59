/** `npm run check`: everything that must hold beside the tests. Prints the output of what fails. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureInstalled } from "./install.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CHECKS = {
  "contracts compile": () => runBin("forge", "build", "contracts"),
  "TypeScript format and lint (Biome)": () => runBin("biome", "ci", "--colors=off", "--error-on-warnings"),
  "TypeScript types": () => runBin("tsc", "-p", "."),
  "Solidity format": () => runBin("forge", "fmt", "--check"),
  "src/chain/abi.ts is of these contracts": () => runBin("tsx", "scripts/abi.ts", "--check"),
  "src/client/api.ts is of these routes": () => runBin("tsx", "scripts/openapi.ts", "--check"),
  "migrations are of this schema": checkMigrations,
  "no dead code (knip)": () => runBin("knip", "--no-progress"),
};

/** Runs all checks; the result is how many failed. */
export function runChecks() {
  let failed = 0;
  for (const [name, check] of Object.entries(CHECKS)) {
    const fault = check();
    console.log(`${fault === null ? "ok  " : "FAIL"}  ${name}`);
    if (fault !== null) {
      console.log(fault);
      failed++;
    }
  }
  return failed;
}

function runBin(command, ...args) {
  const { status, stdout, stderr, error } = spawnSync(join(ROOT, "node_modules/.bin", command), args, {
    cwd: ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 26,
  });
  return status === 0 ? null : `${error?.message ?? ""}${stdout}${stderr}`;
}

/** drizzle-kit has no dry run: it works on a copy of the migrations, and must add nothing to it. */
function checkMigrations() {
  // drizzle-kit takes relative paths alone.
  const copy = "node_modules/.cache/migrations-check";
  rmSync(join(ROOT, copy), { recursive: true, force: true });
  mkdirSync(join(ROOT, copy), { recursive: true });
  cpSync(join(ROOT, "src/db/migrations"), join(ROOT, copy), { recursive: true });
  const before = readdirSync(join(ROOT, copy)).length;
  const options = [
    "--dialect=postgresql",
    "--schema=./src/db/schema.ts",
    `--out=./${copy}`,
    "--casing=snake_case",
  ];
  const fault = runBin("drizzle-kit", "generate", ...options);
  if (fault !== null) return fault;
  const added = readdirSync(join(ROOT, copy)).length - before;
  return added === 0 ? null : "src/db/schema.ts has changed: run `npm run migrations` and commit the result.";
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  ensureInstalled();
  process.exit(runChecks() === 0 ? 0 : 1);
}
