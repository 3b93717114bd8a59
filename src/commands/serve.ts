/** Runs the service alone (API, relayer, worker), against an existing database and chain. */
import { ConfigError, parseConfig } from "../config.js";
import { describeError } from "../logger.js";
import { createService } from "../main.js";

try {
  const service = await createService(parseConfig(process.env));
  console.log(`Listening on ${service.url}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void service.stop().then(() => process.exit(0)));
  }
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : describeError(error));
  process.exit(1);
}
