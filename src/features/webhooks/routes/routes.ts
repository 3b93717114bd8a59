import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { changeWebhookRoutes } from "./change.js";
import { createWebhookRoute } from "./create.js";
import { readWebhookRoutes } from "./read.js";

/** Events sent to URLs of the caller's choice. */
export function webhookRoutes(deps: Deps) {
  return createRouter()
    .route("/", createWebhookRoute(deps))
    .route("/", readWebhookRoutes(deps))
    .route("/", changeWebhookRoutes(deps));
}
