import type { Deps } from "../../../services/deps.js";
import { createParameterReader } from "../../../services/protocol/parameters.js";
import { createRouter } from "../../router.js";
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
