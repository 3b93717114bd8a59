/** `npm start`: installs missing dependencies, then runs the local network in this process. */
import { ensureInstalled } from "./install.mjs";

await ensureInstalled({ development: false });
const { register } = await import("tsx/esm/api");
register();
const { run } = await import("./local/main.ts");
process.exit(await run(process.env, process.argv.slice(2)));
