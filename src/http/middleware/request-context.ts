import { randomUUID } from "node:crypto";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import type { Deps } from "../../deps.js";
import { inRequest } from "../../logger.js";
import type { AppEnv } from "../env.js";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives the request an id (the caller's own if well formed) for all its log lines; logs and measures its end. */
export const requestContext = ({ logger, metrics }: Pick<Deps, "logger" | "metrics">) =>
  createMiddleware<AppEnv>(async (c, next) => {
    const given = c.req.header("x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    const startedAt = performance.now();
    c.set("requestId", requestId);
    c.set("logger", logger);
    c.set("identity", null);
    c.set("rawBody", Buffer.alloc(0));
    c.header("X-Request-Id", requestId);

    await inRequest(requestId, next);

    // Only the path: a query string is the caller's data. Headers and bodies are never logged.
    const { method, path } = c.req;
    const { status } = c.res;
    const ms = performance.now() - startedAt;
    const code = c.get("errorCode");
    metrics?.observeRequest({ method, route: routeOf(c), status, code, seconds: ms / 1000 });
    const caller = c.get("identity") ?? undefined;
    logger.info({ requestId, method, path, status, code, ms: Math.round(ms), caller }, "request");
  });

/** Pattern of the route that responded. */
function routeOf(c: Context): string {
  return matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path ?? "unmatched";
}
