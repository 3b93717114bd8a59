#!/usr/bin/env node
/** `wc`: the command line for agents and for the people behind them. */
import { register } from "tsx/esm/api";

register();
const { run } = await import("../src/cli/main.ts");
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});
