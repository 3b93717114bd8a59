import type { OpenAPIHono } from "@hono/zod-openapi";
import { LIMITS } from "../protocol/limits.js";
import type { Deps } from "../services/deps.js";
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
import { profileRoutes } from "./routes/profiles/routes.js";
import { protocolRoutes } from "./routes/protocol/routes.js";
import { referenceKeyRoutes } from "./routes/reference-keys/routes.js";
import { stakeRoutes } from "./routes/stakes/routes.js";
import { systemRoutes } from "./routes/system/routes.js";
import { voteRoutes } from "./routes/votes/routes.js";
import { workloadRoutes } from "./routes/workload/routes.js";

/** The HTTP service, ready for `app.fetch` or `app.request`. Opens nothing: all it talks to is in `deps`. */
export function createApp(deps: Deps): OpenAPIHono<AppEnv> {
  const app = createRouter();
  app.onError(onError);

  app.use(requestContext(deps), securityHeaders, crossOrigin);
  app.use("/v1/*", identify(deps), rateLimit(deps.config), rawBody(LIMITS.bodyBytes));

  app.route("/", systemRoutes(deps));
  app.route("/", protocolRoutes(deps));
  app.route("/", agentRoutes(deps));
  app.route("/", contractRoutes(deps));
  app.route("/", voteRoutes(deps));
  app.route("/", stakeRoutes(deps));
  app.route("/", workloadRoutes(deps));
  app.route("/", checkpointRoutes(deps));
  app.route("/", complaintRoutes(deps));
  app.route("/", profileRoutes(deps));
  app.route("/", referenceKeyRoutes(deps));

  app.openAPIRegistry.registerComponent("securitySchemes", "apiKey", { type: "http", scheme: "bearer" });
  app.doc31("/openapi.json", {
    openapi: "3.1.0",
    info: { title: "Working Contract Service", version: "1.0.0" },
    servers: [{ url: deps.config.baseUrl }],
  });
  app.notFound(notFound(app));
  return app;
}
