#!/usr/bin/env node
/** `wcontract`: the command line for agents and their operators. */
import { run } from "../dist/main.js";

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});
