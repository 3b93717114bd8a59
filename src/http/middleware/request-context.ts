import { randomUUID } from "node:crypto";
import { createMiddleware } from "hono/factory";
import type { Logger } from "pino";
import type { AppEnv } from "../env.js";

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives the request an id (the caller's own where it is well formed) and a logger, and logs one line at its end. */
export const requestContext = (logger: Logger) =>
  createMiddleware<AppEnv>(async (c, next) => {
    const given = c.req.header("x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    const startedAt = performance.now();
    c.set("requestId", requestId);
    c.set("logger", logger.child({ requestId }));
    c.set("identity", null);
    c.set("rawBody", Buffer.alloc(0));
    c.header("X-Request-Id", requestId);

    await next();

    // The path alone: a query string is the caller's data. Headers and bodies are never logged.
    const { method, path } = c.req;
    const ms = Math.round(performance.now() - startedAt);
    c.get("logger").info(
      { method, path, status: c.res.status, ms, caller: c.get("identity") ?? undefined },
      "request",
    );
  });
