import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { getKeysRoute } from "./get.js";
import { listReleasesRoute } from "./list-releases.js";

/** Keys of the encrypted references, and the log of who got them. */
export function referenceKeyRoutes(deps: Deps) {
  return createRouter().route("/", getKeysRoute(deps)).route("/", listReleasesRoute(deps));
}
