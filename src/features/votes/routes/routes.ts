import { type Deps, reading } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { listVotesRoute } from "./list.js";
import { listContractVotesRoute } from "./list-of-contract.js";
import { submitVotesRoute } from "./submit.js";

/** The Backup Agents' sealed votes. */
export function voteRoutes(deps: Deps) {
  return createRouter()
    .route("/", submitVotesRoute(deps))
    .route("/", listContractVotesRoute(reading(deps)))
    .route("/", listVotesRoute(reading(deps)));
}
