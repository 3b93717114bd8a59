import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { createParameterReader } from "../../protocol/parameters.js";
import { addStakeRoute } from "./add.js";
import { getStakeRoute } from "./get.js";
import { unstakeRoute } from "./unstake.js";

export function stakeRoutes(deps: Deps) {
  const stakeDeps = { ...deps, readParameters: createParameterReader(deps) };
  return createRouter()
    .route("/", addStakeRoute(stakeDeps))
    .route("/", unstakeRoute(stakeDeps))
    .route("/", getStakeRoute(stakeDeps));
}
