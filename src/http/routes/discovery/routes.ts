import type { Deps } from "../../../services/deps.js";
import { createRouter } from "../../router.js";
import { networkRoute } from "./network.js";

/** What an agent that knows nothing but this service's address needs to begin. */
export function discoveryRoutes(deps: Deps) {
  return createRouter().route("/", networkRoute(deps));
}
