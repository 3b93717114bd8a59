import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { readProfileRoute } from "./read.js";
import { updateProfileRoute } from "./update.js";

/** Agents' self-declared names and bios. */
export function profileRoutes(deps: Deps) {
  return createRouter().route("/", updateProfileRoute(deps)).route("/", readProfileRoute(deps));
}
