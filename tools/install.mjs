/** Installs the dependencies if node_modules is missing or does not match the lockfile. Needs no package itself. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** `development` also installs the packages that only checks and tests need: the compilers among them. */
export async function ensureInstalled({ development = true } = {}) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 11)) {
    console.error(`Node 20.11 or later is required; this is ${process.version}.`);
    process.exit(1);
  }
  if (!isInstalled(development)) install(development);
  const { ensureBuilt } = await import("./build.mjs");
  await ensureBuilt();
}

function install(development) {
  const count = packages("package-lock.json").filter(([, entry]) => isWanted(entry, development)).length;
  console.log(`Installing about ${count} packages (npm ci).`);
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith(".js") ? [process.execPath, [npm]] : ["npm", []];
  const options = ["--no-audit", "--no-fund", "--loglevel=error", ...(development ? [] : ["--omit=dev"])];
  const startedAt = Date.now();
  const { status, error } = spawnSync(command, [...args, "ci", ...options], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (error !== undefined) console.error(`npm cannot be run: ${error.message}`);
  if (status !== 0) process.exit(1);
  console.log(`Installed in ${Math.round((Date.now() - startedAt) / 1000)} s.`);
}

/** Compares the lockfile with npm's copy in node_modules. */
function isInstalled(development) {
  const present = Object.fromEntries(packages("node_modules/.package-lock.json"));
  return packages("package-lock.json").every(([path, entry]) => {
    const found = present[path];
    return found === undefined ? !isWanted(entry, development) : found.version === entry.version;
  });
}

/** Packages for other platforms are optional. */
function isWanted(entry, development) {
  return entry.optional !== true && (development || !(entry.dev || entry.devOptional));
}

/** The installed packages that a lockfile names, by path; the repository's own workspaces are not among them. */
function packages(lockfile) {
  try {
    const entries = Object.entries(JSON.parse(readFileSync(join(ROOT, lockfile), "utf8")).packages);
    return entries.filter(([path, entry]) => path.includes("node_modules/") && !entry.link);
  } catch {
    return [];
  }
}
