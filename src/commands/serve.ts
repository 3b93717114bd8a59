/** Runs the service alone (API, relayer, worker), against an existing database and chain. */
import { parseConfig } from "../config.js";
import { refuse } from "../logger.js";
import { createService } from "../main.js";

try {
  const service = await createService(parseConfig(process.env));
  console.log(`Listening on ${service.url}`);
  // Later ones do nothing: under npm, Ctrl-C comes twice, from the terminal and from npm.
  await new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, resolve);
  });
  await service.stop();
  process.exit(0);
} catch (error) {
  refuse(error);
}
