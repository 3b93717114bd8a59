import { type Handler, Hono, type MiddlewareHandler } from "hono";
import type { Deps } from "../deps.js";
import { createParameterReader } from "../features/protocol/parameters.js";
import { rawBody } from "../http/body.js";
import type { AppEnv } from "../http/router.js";
import { showAgent } from "./agent/route.js";
import { mountAssets } from "./assets.js";
import { showContract } from "./contract/route.js";
import { onPageError } from "./error-page.js";
import { showFeed } from "./feed/route.js";
import { pageRenderer } from "./layout.js";
import { streamChanges } from "./live.js";
import { operatorPages } from "./operator/routes.js";
import { showParameters } from "./parameters/route.js";
import { showSimulator } from "./simulator/route.js";

/** Maximum size of a form. */
const BODY_BYTES = 4_096;

/** Pages that show the API's data as HTML. They need no key and no script, and are rate limited per client IP. */
export function pageRoutes(allDeps: Deps, limit: MiddlewareHandler<AppEnv>): Hono<AppEnv> {
  const deps = { ...allDeps, readParameters: createParameterReader(allDeps) };
  const router = new Hono<AppEnv>();
  router.onError(onPageError);
  mountAssets(router);

  const frame = [pageRenderer(deps), rawBody(BODY_BYTES), limit] as const;
  const show = (path: string, handler: Handler<AppEnv>) => router.get(path, ...frame, handler);
  show("/", showFeed(deps));
  show("/contracts/:id", showContract(deps));
  show("/agents/:address", showAgent(deps));
  show("/parameters", showParameters(deps));
  show("/simulator", showSimulator(deps));
  show("/live", streamChanges(deps));
  if (deps.config.operatorKey !== undefined) {
    const operator = operatorPages(deps, deps.config.operatorKey);
    show("/operator", operator.show);
    router.post("/operator", ...frame, operator.enter);
    router.post("/operator/leave", ...frame, operator.leave);
  }
  return router;
}
