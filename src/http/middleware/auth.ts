import { createMiddleware } from "hono/factory";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { authenticate } from "../../features/agents/authenticate.js";
import type { AppEnv, CallerEnv } from "../env.js";

/** Looks up the key's owner for limits, logs and `requireKey`; refuses nothing. */
export const identify = (deps: Pick<Deps, "db" | "config">) =>
  createMiddleware<AppEnv>(async (c, next) => {
    const header = c.req.header("authorization");
    if (header !== undefined) c.set("identity", await authenticate(deps, header));
    await next();
  });

/**
 * Passes only requests with an active API key, and sets `caller`. List it in a route's `middleware`, where it runs
 * before every validator. One response for a missing, malformed, unknown or revoked key.
 */
export const requireKey = createMiddleware<CallerEnv>(async (c, next) => {
  const identity = c.get("identity");
  if (identity === null) {
    throw new AppError("unauthorized", {
      message: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
      hint: "Get one with POST /v1/agents/{address}/challenge, then POST /v1/agents/{address}/api-key.",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
  c.set("caller", identity);
  await next();
});
