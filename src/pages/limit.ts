import { createMiddleware } from "hono/factory";
import type { Deps } from "../deps.js";
import { clientAddress, createRateLimiter, takeOrRefuse } from "../http/rate-limit.js";
import type { AppEnv } from "../http/router.js";

/** One rate limit per client IP for all pages. Create it once per service so that the pages share it. */
export function limitPages({ config }: Pick<Deps, "config">) {
  const limiter = createRateLimiter(config.rateLimits.pages);
  return createMiddleware<AppEnv>(async (c, next) => {
    takeOrRefuse(c, "pages", limiter, clientAddress(c, config.trustedProxies));
    await next();
  });
}
