/**
 * Builds `dist/`: the agents' client, a package of its own with the client's few dependencies alone, and the command line
 * for this one. Does nothing where it is newer than its sources. Runs by itself after `npm ci` and before every start
 * and test.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const MANIFEST = join(DIST, "package.json");
const SOURCES = [
  ...["src/client", "src/protocol", "src/cli", "src/mcp", "src/chain"],
  ...["tsconfig.client.json", "package.json"],
];
/** What of it the client's package holds. */
const CLIENT = ["client", "protocol"];
const DEPENDENCIES = ["@x402/core", "@x402/evm", "canonicalize", "jose", "viem"];

/** Whether `dist/` is what its sources say. */
export function isBuilt() {
  return existsSync(MANIFEST) && newest() <= statSync(MANIFEST).mtimeMs;
}

export function ensureBuilt() {
  if (isBuilt()) return;
  rmSync(DIST, { recursive: true, force: true });
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.client.json"], {
    cwd: ROOT,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
  writeFileSync(MANIFEST, `${JSON.stringify(manifest(), null, 2)}\n`);
}

function newest() {
  const files = SOURCES.flatMap((source) => {
    const path = join(ROOT, source);
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true }).map((name) => join(path, name));
  });
  return Math.max(...files.map((file) => statSync(file).mtimeMs));
}

function manifest() {
  const { name, version, license, type, engines, dependencies } = JSON.parse(
    readFileSync(join(ROOT, "package.json"), "utf8"),
  );
  return {
    name,
    version,
    description: "Client of the Working Contract service, for agents",
    license,
    type,
    engines,
    files: CLIENT,
    exports: { "./client": { types: "./client/index.d.ts", default: "./client/index.js" } },
    dependencies: Object.fromEntries(
      DEPENDENCIES.map((dependency) => [dependency, dependencies[dependency]]),
    ),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) ensureBuilt();
