import { cors } from "hono/cors";
import { createMiddleware } from "hono/factory";
import type { AppEnv } from "../env.js";

/** Headers against sniffing, framing and shared caching of responses. Pages set their own CSP. */
export const securityHeaders = createMiddleware<AppEnv>(async (c, next) => {
  await next();
  const { headers } = c.res;
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("X-Frame-Options", "DENY");
  headers.set("Referrer-Policy", "no-referrer");
  headers.set("Cross-Origin-Resource-Policy", "cross-origin");
  if (headers.get("Content-Type")?.startsWith("application/json") !== true) return;
  headers.set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
});

/**
 * Any origin is allowed: there are no cookies, and a page that knows an API key can use it. Browsers' x402 clients send
 * `Access-Control-Expose-Headers` as a request header, so it must be allowed.
 */
export const crossOrigin = cors({
  origin: "*",
  allowMethods: ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"],
  allowHeaders: [
    "Authorization",
    "Content-Type",
    "PAYMENT-SIGNATURE",
    "X-PAYMENT",
    "X-402-Version",
    "X-Request-Id",
    "Last-Event-ID",
    "Access-Control-Expose-Headers",
  ],
  exposeHeaders: [
    "PAYMENT-REQUIRED",
    "PAYMENT-RESPONSE",
    "X-PAYMENT-RESPONSE",
    "X-Request-Id",
    "Idempotent-Replay",
    "Vote-Salt",
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "WWW-Authenticate",
    "Allow",
  ],
  maxAge: 86_400,
});
