/** Runs the service alone (API, relayer, worker), against an existing database and chain. */
import { parseConfig } from "../config.js";
import { refuse } from "../logger.js";
import { createService } from "../main.js";

try {
  const service = await createService(parseConfig(process.env));
  console.log(`Listening on ${service.url}`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void service.stop().then(() => process.exit(0)));
  }
} catch (error) {
  refuse(error);
}
