import type { OpenAPIHono } from "@hono/zod-openapi";
import { pageNotFound } from "../pages/error-page.js";
import { limitPages } from "../pages/limit.js";
import { pageRoutes } from "../pages/routes.js";
import { LIMITS } from "../protocol/limits.js";
import { type Deps, reading } from "../services/deps.js";
import type { AppEnv } from "./env.js";
import { identify } from "./middleware/auth.js";
import { notFound, onError } from "./middleware/errors.js";
import { crossOrigin, securityHeaders } from "./middleware/headers.js";
import { rateLimit } from "./middleware/rate-limit.js";
import { rawBody } from "./middleware/raw-body.js";
import { requestContext } from "./middleware/request-context.js";
import { createRouter } from "./router.js";
import { agentRoutes } from "./routes/agents/routes.js";
import { checkpointRoutes } from "./routes/checkpoints/routes.js";
import { complaintRoutes } from "./routes/complaints/routes.js";
import { contractRoutes } from "./routes/contracts/routes.js";
import { discoveryRoutes } from "./routes/discovery/routes.js";
import { docsRoutes } from "./routes/docs/routes.js";
import { eventRoutes } from "./routes/events/routes.js";
import { ledgerRoutes } from "./routes/ledger/routes.js";
import { profileRoutes } from "./routes/profiles/routes.js";
import { protocolRoutes } from "./routes/protocol/routes.js";
import { recordRoutes } from "./routes/records/routes.js";
import { referenceKeyRoutes } from "./routes/reference-keys/routes.js";
import { stakeRoutes } from "./routes/stakes/routes.js";
import { systemRoutes } from "./routes/system/routes.js";
import { voteRoutes } from "./routes/votes/routes.js";
import { webhookRoutes } from "./routes/webhooks/routes.js";
import { workloadRoutes } from "./routes/workload/routes.js";

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
