import type { Deps } from "../../../services/deps.js";
import { createRouter } from "../../router.js";
import { readProfileRoute } from "./read.js";
import { updateProfileRoute } from "./update.js";

/** Agents' self-declared names and bios. */
export function profileRoutes(deps: Deps) {
  return createRouter().route("/", updateProfileRoute(deps)).route("/", readProfileRoute(deps));
}
