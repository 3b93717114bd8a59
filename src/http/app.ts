import type { OpenAPIHono } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { type Deps, reading } from "../deps.js";
import { agentRoutes } from "../features/agents/routes/routes.js";
import { checkpointRoutes } from "../features/checkpoints/routes/routes.js";
import { complaintRoutes } from "../features/complaints/routes/routes.js";
import { ledgerRoutes } from "../features/contracts/routes/ledger.js";
import { contractRoutes } from "../features/contracts/routes/routes.js";
import { discoveryRoutes } from "../features/discovery/routes.js";
import { eventRoutes } from "../features/events/routes/routes.js";
import { profileRoutes } from "../features/profiles/routes/routes.js";
import { protocolRoutes } from "../features/protocol/routes.js";
import { recordRoutes } from "../features/records/routes.js";
import { referenceKeyRoutes } from "../features/references/routes/routes.js";
import { stakeRoutes } from "../features/stakes/routes/routes.js";
import { systemRoutes } from "../features/system/routes.js";
import { voteRoutes } from "../features/votes/routes/routes.js";
import { webhookRoutes } from "../features/webhooks/routes/routes.js";
import { workloadRoutes } from "../features/workload/routes/routes.js";
import { pageNotFound } from "../pages/error-page.js";
import { limitPages } from "../pages/limit.js";
import { docsRoutes } from "../pages/reference/routes.js";
import { pageRoutes } from "../pages/routes.js";
import type { AppEnv } from "./env.js";
import { identify } from "./middleware/auth.js";
import { notFound, onError } from "./middleware/errors.js";
import { crossOrigin, securityHeaders } from "./middleware/headers.js";
import { rateLimit } from "./middleware/rate-limit.js";
import { rawBody } from "./middleware/raw-body.js";
import { requestContext } from "./middleware/request-context.js";
import { createRouter } from "./router.js";

/** The HTTP service, ready for `app.fetch` or `app.request`. Opens nothing: all it talks to is in `deps`. */
export function createApp(deps: Deps): OpenAPIHono<AppEnv> {
  const app = createRouter();
  const readOnly = reading(deps);
  app.onError(onError);

  app.use(requestContext(deps), securityHeaders, crossOrigin);
  app.use("/v1/*", identify(deps), rateLimit(deps.config), rawBody(LIMITS.bodyBytes));

  app.route("/", systemRoutes(deps));
  app.route("/", protocolRoutes(deps));
  app.route("/", agentRoutes(deps));
  app.route("/", contractRoutes(deps));
  app.route("/", ledgerRoutes(readOnly));
  app.route("/", voteRoutes(deps));
  app.route("/", stakeRoutes(deps));
  app.route("/", workloadRoutes(readOnly));
  app.route("/", recordRoutes(readOnly));
  app.route("/", checkpointRoutes(deps));
  app.route("/", complaintRoutes(deps));
  app.route("/", profileRoutes(deps));
  app.route("/", referenceKeyRoutes(deps));
  app.route("/", eventRoutes(readOnly));
  app.route("/", webhookRoutes(deps));

  app.route("/", discoveryRoutes(deps));
  const limit = limitPages(deps);
  app.route("/", docsRoutes(app, deps, limit));
  app.route("/", pageRoutes(readOnly, limit));
  app.notFound(pageNotFound(deps, notFound(app)));
  return app;
}

/** What every process answers, also one that serves no agents: health, readiness, metrics. */
export function createProbeApp(deps: Parameters<typeof systemRoutes>[0] & Pick<Deps, "logger">) {
  const app = createRouter();
  app.onError(onError);
  app.use(requestContext(deps), securityHeaders);
  app.route("/", systemRoutes(deps));
  app.notFound(notFound(app));
  return app;
}
