import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { issueKeyRoute } from "./issue-key.js";
import { listKeysRoute } from "./list-keys.js";
import { requestChallengeRoute } from "./request-challenge.js";
import { revokeKeysRoute } from "./revoke-keys.js";

/** Challenges and API keys. */
export function agentRoutes(deps: Deps) {
  return createRouter()
    .route("/", requestChallengeRoute(deps))
    .route("/", issueKeyRoute(deps))
    .route("/", revokeKeysRoute(deps))
    .route("/", listKeysRoute(deps));
}
