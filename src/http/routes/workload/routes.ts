import type { Deps } from "../../../services/deps.js";
import { createRouter } from "../../router.js";
import { getWorkloadRoute } from "./get.js";

export function workloadRoutes(deps: Deps) {
  return createRouter().route("/", getWorkloadRoute(deps));
}
