/** `npm start`: installs missing dependencies, then runs the local network in this process. */
import { spawnSync } from "node:child_process";
import { ensureInstalled } from "./install.mjs";

// First of all: npm can end while packages are installed or loaded, and even before this line: then another process has
// become the parent, which names neither npm nor this script.
const parent = process.ppid;
const { stdout } = spawnSync("ps", ["-o", "ppid=,args=", "-p", String(parent)], { encoding: "utf8" });
const isLauncher = /npm|yarn|bun|start/.test(stdout ?? "");
const launcher = { shell: isLauncher ? parent : null, npm: Number.parseInt(stdout ?? "", 10) };

await ensureInstalled({ development: false });
const { register } = await import("tsx/esm/api");
register();
const { run } = await import("./local/main.ts");
process.exit(await run(process.env, process.argv.slice(2), launcher));
