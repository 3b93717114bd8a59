/** Installs the dependencies if node_modules is missing or does not match the lockfile. Has no dependencies itself. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

export function ensureInstalled() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 11)) {
    console.error(`Node 20.11 or later is required; this is ${process.version}.`);
    process.exit(1);
  }
  if (isInstalled()) {
    ensureBuilt();
    return;
  }
  console.log("Installing the dependencies (npm ci).");
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith(".js") ? [process.execPath, [npm]] : ["npm", []];
  const { status, error } = spawnSync(command, [...args, "ci", "--no-progress", "--loglevel=error"], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (error !== undefined) console.error(`npm cannot be run: ${error.message}`);
  if (status !== 0) process.exit(1);
}

/** Compares the lockfile with npm's copy in node_modules. Packages for other platforms can be absent. */
function isInstalled() {
  const wanted = read("package-lock.json");
  const present = read("node_modules/.package-lock.json");
  if (wanted === null || present === null) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "" || entry.link) return true;
    const found = present[path];
    return found === undefined ? entry.optional === true : found.version === entry.version;
  });
}

function read(path) {
  try {
    return JSON.parse(readFileSync(join(ROOT, path), "utf8")).packages;
  } catch {
    return null;
  }
}
