/** Every request passes this: its id and log line, the caller behind its key, security and CORS headers. */
import { randomUUID } from "node:crypto";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { inRequest } from "../logger.js";
import type { AppEnv, CallerEnv } from "./router.js";

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
    // A flood beyond the limits would fill the disk; metrics count it.
    const level = code === "rate_limited" ? "debug" : "info";
    logger[level]({ requestId, method, path, status, code, ms: Math.round(ms), caller }, "request");
  });

/** Pattern of the route that responded. */
function routeOf(c: Context): string {
  return matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path ?? "unmatched";
}

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

/** Headers against sniffing, framing and shared caching of responses. Pages set their own CSP. */
export const securityHeaders = createMiddleware<AppEnv>(async (c, next) => {
  c.header("X-Content-Type-Options", "nosniff");
  c.header("X-Frame-Options", "DENY");
  c.header("Referrer-Policy", "no-referrer");
  c.header("Cross-Origin-Resource-Policy", "cross-origin");
  await next();
  // Not c.header(), which would copy the finished response.
  const { headers, status } = c.res;
  if (headers.get("Content-Type")?.startsWith("application/json") !== true && status !== 304) return;
  headers.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  if (headers.has("Cache-Control")) return;
  headers.set("Cache-Control", headers.has("ETag") ? "private, no-cache" : "no-store");
});

const ALLOWED_METHODS = "GET,HEAD,POST,PATCH,DELETE,OPTIONS";
const ALLOWED_HEADERS = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "Action-Signature",
  "Action-Deadline",
  "If-None-Match",
  "PAYMENT-SIGNATURE",
  "X-PAYMENT",
  "X-402-Version",
  "X-Request-Id",
  "Last-Event-ID",
  "Access-Control-Expose-Headers",
].join();
const EXPOSED_HEADERS = [
  "PAYMENT-REQUIRED",
  "PAYMENT-RESPONSE",
  "X-PAYMENT-RESPONSE",
  "X-Request-Id",
  "Idempotent-Replay",
  "Vote-Salt",
  "ETag",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
  "WWW-Authenticate",
  "Allow",
].join();

/**
 * Any origin is allowed: there are no cookies, and a page that knows an API key can use it. Browsers' x402 clients send
 * `Access-Control-Expose-Headers` as a request header, so it must be allowed. Hono's own middleware touches the response
 * before there is one, and every response would then be copied as a stream.
 */
export const crossOrigin = createMiddleware<AppEnv>(async (c, next) => {
  c.header("Access-Control-Allow-Origin", "*");
  c.header("Access-Control-Expose-Headers", EXPOSED_HEADERS);
  if (c.req.method !== "OPTIONS") return next();
  c.header("Access-Control-Allow-Methods", ALLOWED_METHODS);
  c.header("Access-Control-Allow-Headers", ALLOWED_HEADERS);
  c.header("Access-Control-Max-Age", "86400");
  return c.body(null, 204);
});
