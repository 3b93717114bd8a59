#!/usr/bin/env node
/** `wc`: the command line for agents and for the people behind them. Starts from `dist/`, or slowly from its sources. */
import { isBuilt } from "../scripts/build.mjs";

const { run } = isBuilt() ? await import("../dist/cli/main.js") : await importSources();
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});

async function importSources() {
  const { register } = await import("tsx/esm/api");
  register();
  return import("../src/cli/main.ts");
}
