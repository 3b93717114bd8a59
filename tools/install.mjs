/** Installs the dependencies if node_modules is missing or does not match the lockfile. Needs no package itself. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isMain, ROOT } from "./run.mjs";

/** Unmodified x402 clients that tests run, without the wallet kits that only their web page loads: a separate folder. */
const CLIENTS = join(ROOT, "test/clients");
/** What `npm start` needs: not the command line, which users install on its own. */
const START = ["", "packages/protocol", "packages/client", "tools"];
const PROGRESS_MS = 5000;

/** `development` also installs the packages that only checks and tests need: the compilers among them. */
export async function ensureInstalled({ development = true } = {}) {
  const fault = machineFault(development);
  if (fault !== null) {
    console.error(fault);
    process.exit(1);
  }
  const wanted = development ? requiredPackages() : packagesOfStart();
  const options = development ? [] : startOptions();
  if (missingOf(ROOT, wanted).length > 0) {
    if (!(await install(ROOT, wanted, options))) process.exit(1);
    const missing = missingOf(ROOT, wanted);
    if (missing.length > 0) {
      const paths = missing.map(([path]) => path).join(", ");
      console.error(
        `npm reported success, but did not install ${paths}. Repeat the command, as a download can have failed, or check npm's settings: npm config ls`,
      );
      process.exit(1);
    }
  }
  const { ensureBuilt } = await import("./build.mjs");
  await ensureBuilt();
}

/** Null if this machine can run everything: npm silently skips the binaries that it cannot run. */
function machineFault(development) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  // Vite, rolldown and knip need the newer ones.
  const lowest = development ? { 20: 19, 21: Infinity, 22: 12 } : { 20: 11 };
  if (major < 20 || minor < lowest[major]) {
    const versions = development ? "20.19, 22.12" : "20.11";
    return `Node.js ${versions} or later is required; this is ${process.versions.node}.`;
  }
  if (process.platform !== "linux" || process.report.getReport().header.glibcVersionRuntime) return null;
  return "Postgres and anvil need glibc, and this Linux has musl, as Alpine does: use Debian or its images.";
}

/** Installs the stock x402 clients. Throws if npm fails. */
export async function ensureClients() {
  const wanted = packages(join(CLIENTS, "package-lock.json")).filter(([, entry]) => entry.optional !== true);
  if (missingOf(CLIENTS, wanted).length === 0 || (await install(CLIENTS, wanted, ["--ignore-scripts"])))
    return;
  throw new Error("The stock x402 clients could not be installed; npm's own message is above.");
}

function startOptions() {
  const workspaces = START.filter((path) => path !== "").map((path) => `--workspace=${path}`);
  return ["--omit=dev", "--include-workspace-root", ...workspaces];
}

/** Resolves to whether npm succeeded. */
async function install(dir, wanted, options) {
  // `npm ci` empties node_modules first, under a local network that runs from it.
  const how = isPart(dir, wanted) ? ["install", "--no-save", "--package-lock"] : ["ci"];
  console.log(`Installing ${wanted.length} packages (npm ${how[0]}).`);
  const npm = process.env.npm_execpath;
  const [command, args] = npm?.endsWith("npm-cli.js") ? [process.execPath, [npm]] : ["npm", []];
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1000);
  // Settings of the user, such as NODE_ENV=production, could omit them.
  const included = options.includes("--omit=dev") ? [] : ["--include=dev"];
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  const child = spawn(command, [...args, ...how, ...quiet, "--include=optional", ...included, ...options], {
    cwd: dir,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const progress = setInterval(() => {
    const unpacked = wanted.filter(([path]) => existsSync(join(dir, path, "package.json")));
    console.log(`  ${unpacked.length} unpacked after ${seconds()} s`);
  }, PROGRESS_MS);
  const status = await new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`npm cannot be run: ${error.message}`);
      resolve(1);
    });
    child.once("close", resolve);
  });
  clearInterval(progress);
  if (status === 0) console.log(`Installed in ${seconds()} s.`);
  return status === 0;
}

/** Compares what is wanted with npm's copy of the lockfile in node_modules. */
function missingOf(dir, wanted) {
  const present = Object.fromEntries(packages(join(dir, "node_modules/.package-lock.json")));
  return wanted.filter(([path, entry]) => present[path]?.version !== entry.version);
}

/** Whether packages are only missing, as after `npm start`, and none is of another version. */
function isPart(dir, wanted) {
  const present = Object.fromEntries(packages(join(dir, "node_modules/.package-lock.json")));
  const known = wanted.filter(([path]) => present[path] !== undefined);
  return known.length > 0 && known.every(([path, entry]) => present[path].version === entry.version);
}

/** All packages but those for other platforms. npm ignores it if an optional one, as every binary is, cannot be installed. */
const requiredPackages = () =>
  packages(join(ROOT, "package-lock.json")).filter(
    ([, { optional, os, cpu = [process.arch], libc = ["glibc"] }]) =>
      optional !== true ||
      (os?.includes(process.platform) && cpu.includes(process.arch) && libc.includes("glibc")),
  );

/** What `npm start` installs: paths and lockfile entries. */
export function packagesOfStart() {
  const needed = reachable(readLockfile(join(ROOT, "package-lock.json")), START);
  return requiredPackages().filter(([path]) => needed.has(path));
}

/** Paths of all packages on which these workspaces depend, resolved as Node does: from the inside out. */
function reachable(entries, workspaces) {
  const found = new Set();
  const visit = (from) => {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta = {} } = entries[from];
    const peers = Object.keys(peerDependencies ?? {}).filter((name) => !peerDependenciesMeta[name]?.optional);
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("node_modules/") - 1))) {
        const path = join(at, "node_modules", name);
        if (entries[path] === undefined && at !== "") continue;
        if (entries[path] !== undefined && !found.has(path)) {
          found.add(path);
          visit(entries[path].link ? entries[path].resolved : path);
        }
        break;
      }
    }
  };
  for (const workspace of workspaces) visit(workspace);
  return found;
}

/** The installed packages that a lockfile names, by path; the repository's own workspaces are not among them. */
function packages(lockfile) {
  const entries = Object.entries(readLockfile(lockfile));
  return entries.filter(([path, entry]) => path.includes("node_modules/") && !entry.link);
}

function readLockfile(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8")).packages;
  } catch {
    return {};
  }
}

if (isMain(import.meta)) {
  await ensureInstalled();
  if (process.argv.includes("--clients")) await ensureClients();
}
