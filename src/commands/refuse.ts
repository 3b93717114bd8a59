import { ConfigError } from "../config.js";
import { describeError } from "../logger.js";

/** Ends the process with one line for each wrong setting, or with any other error in the form that is safe to log. */
export function refuse(error: unknown): never {
  console.error(error instanceof ConfigError ? error.message : describeError(error));
  process.exit(1);
}
