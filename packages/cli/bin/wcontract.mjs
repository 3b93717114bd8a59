#!/usr/bin/env node
/** `wcontract`: the command line for agents and their operators. */
import { run } from "../dist/main.js";

// Hides the arguments, such as a vote, from the machine's other users.
process.title = "wcontract";

// The reader can end early, as `head` does. The command still finishes what it began, above all a payment.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error) => {
    if (error.code !== "EPIPE") throw error;
  });

process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});
