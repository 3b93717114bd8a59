import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../http/env.js";
import { clientAddress } from "../http/middleware/client-address.js";
import { createRateLimiter, takeOrRefuse } from "../http/middleware/rate-limit.js";
import { rawBody } from "../http/middleware/raw-body.js";
import type { Deps } from "../services/deps.js";
import { mountAssets } from "./assets.js";
import { showContract } from "./contract/route.js";
import { onPageError } from "./error-page.js";
import { showFeed } from "./feed/route.js";
import { pageRenderer } from "./layout.js";

/** Of a form. */
const BODY_BYTES = 4_096;

/** The pages for people: what the API's services answer, as HTML. No key, no script needed, limited per client IP. */
export function pageRoutes(deps: Deps): Hono<AppEnv> {
  const router = new Hono<AppEnv>();
  router.onError(onPageError);
  mountAssets(router);

  const pages = {
    "/": showFeed(deps),
    "/contracts/:id": showContract(deps),
  };
  const frame = [pageRenderer(deps), rawBody(BODY_BYTES), limitPages(deps)] as const;
  for (const [path, show] of Object.entries(pages)) router.get(path, ...frame, show);
  return router;
}

function limitPages({ config }: Pick<Deps, "config">) {
  const limiter = createRateLimiter(config.rateLimits.pages);
  return createMiddleware<AppEnv>(async (c, next) => {
    takeOrRefuse(c, "pages", limiter, clientAddress(c, config.trustedProxies));
    await next();
  });
}
