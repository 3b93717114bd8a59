import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { getWorkloadRoute } from "./get.js";

export function workloadRoutes(deps: Deps) {
  return createRouter().route("/", getWorkloadRoute(deps));
}
