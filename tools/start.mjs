/** `npm start`: installs missing dependencies, then runs the local network in this process. */
import { spawnSync } from "node:child_process";
import { ensureInstalled } from "./install.mjs";

// First of all: npm can end while packages are installed or loaded.
const shell = process.ppid;
const { stdout } = spawnSync("ps", ["-o", "ppid=", "-p", String(shell)], { encoding: "utf8" });
const launcher = { shell, npm: Number.parseInt(stdout ?? "", 10) };

await ensureInstalled({ development: false });
const { register } = await import("tsx/esm/api");
register();
const { run } = await import("./local/main.ts");
process.exit(await run(process.env, process.argv.slice(2), launcher));
