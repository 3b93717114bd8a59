/** `npm start`: installs missing dependencies, then runs the local network in this process. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { ensureInstalled } from "./install.mjs";

// First of all: npm can end while packages are installed or loaded, and even before this line: then another process has
// become the parent, which names neither npm nor this script.
const parent = process.ppid;
const described = describeProcess(parent);
const isLauncher = /npm|yarn|bun|start/.test(described);
// Some shells become the command that they run: then the parent is npm, and its own parent is someone else's shell.
const isShell = described.includes("tools/start.mjs");
const launcher = {
  parent: isLauncher ? parent : null,
  grandparent: isShell ? Number.parseInt(described, 10) : null,
};

await ensureInstalled({ development: false });
const { run } = await import("../dist/service/local.mjs");
process.exit(await run(process.env, process.argv.slice(2), launcher));

/** The parent's id and the command line of a process. Linux gets by without ps: slim images have none. */
function describeProcess(pid) {
  if (process.platform !== "linux") {
    return spawnSync("ps", ["-o", "ppid=,args=", "-p", String(pid)], { encoding: "utf8" }).stdout ?? "";
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in brackets, can contain spaces; the parent is the second field after it.
    const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return `${ppid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8")}`;
  } catch {
    return "";
  }
}
