/**
 * Request rates: fixed windows of one minute, counted in this process's memory. Each API process
 * counts separately, so an address can reach the limit once per process: divide the numbers, or limit exactly at the
 * proxy. In exchange no request costs a write, and a slow database never causes refusals.
 */

import type { ServerResponse } from "node:http";
import { isIPv6 } from "node:net";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { Config } from "../config.js";
import { AppError } from "../errors.js";
import type { AppEnv } from "./router.js";

const WINDOW_SECONDS = 60;
/** Beyond this number of counted callers the oldest are dropped, which bounds memory under a flood of new ones. */
const MAX_COUNTED = 100_000;

export interface RateLimiter {
  /** Counts one request of `key`. */
  take(key: string): { allowed: boolean; remaining: number; resetSeconds: number };
  readonly limit: number;
}

/** Allows `limit` requests per key and minute; 0 allows everything. `now` is in milliseconds. */
export function createRateLimiter(limit: number, now: () => number = () => performance.now()): RateLimiter {
  const windows = new Map<string, { count: number; endsAt: number }>();
  return {
    limit,
    take(key) {
      const time = now();
      let window = windows.get(key);
      if (window === undefined || window.endsAt <= time) {
        windows.delete(key);
        forgetOldest(windows, time);
        window = { count: 0, endsAt: time + WINDOW_SECONDS * 1000 };
        windows.set(key, window);
      }
      window.count++;
      return {
        allowed: limit === 0 || window.count <= limit,
        remaining: Math.max(0, limit - window.count),
        resetSeconds: Math.max(1, Math.ceil((window.endsAt - time) / 1000)),
      };
    },
  };
}

/** Insertion order is the order of expiry, so expired windows are at the front of the map. */
function forgetOldest(windows: Map<string, { endsAt: number }>, time: number): void {
  for (const [key, window] of windows) {
    if (window.endsAt > time && windows.size < MAX_COUNTED) return;
    windows.delete(key);
  }
}

/** Counts a request of `key` and sets the RateLimit headers; throws `429 rate_limited` beyond the limit. */
export function takeOrRefuse(c: Context<AppEnv>, name: string, limiter: RateLimiter, key: string): void {
  if (limiter.limit === 0) return;
  const { allowed, remaining, resetSeconds } = limiter.take(key);
  c.header("RateLimit-Policy", `"${name}";q=${limiter.limit};w=${WINDOW_SECONDS}`);
  c.header("RateLimit", `"${name}";r=${remaining};t=${resetSeconds}`);
  c.header("RateLimit-Limit", String(limiter.limit));
  c.header("RateLimit-Remaining", String(remaining));
  c.header("RateLimit-Reset", String(resetSeconds));
  if (allowed) return;
  throw new AppError("rate_limited", {
    message: `More than ${limiter.limit} requests per minute (${name}); retry in ${resetSeconds} s.`,
    retryable: true,
    retryAfterSeconds: resetSeconds,
  });
}

/** Limits reads and writes per address, and everything without a key per client IP. Runs after `identify`. */
export function rateLimit({ rateLimits, trustedProxies }: Pick<Config, "rateLimits" | "trustedProxies">) {
  const reads = createRateLimiter(rateLimits.reads);
  const writes = createRateLimiter(rateLimits.writes);
  const anonymous = createRateLimiter(rateLimits.anonymous);
  return createMiddleware<AppEnv>(async (c, next) => {
    const identity = c.get("identity");
    if (identity === null) takeOrRefuse(c, "anonymous", anonymous, clientAddress(c, trustedProxies));
    else if (c.req.method === "GET" || c.req.method === "HEAD") takeOrRefuse(c, "reads", reads, identity);
    else takeOrRefuse(c, "writes", writes, identity);
    await next();
  });
}

/** Throws `429 rate_limited` if the client IP is receiving too many large responses; counts this one until it closes. */
export function createDownloadLimit({ trustedProxies }: Pick<Config, "trustedProxies">) {
  const open = new Map<string, number>();
  return (c: Context<AppEnv>): void => {
    const { outgoing }: { outgoing?: ServerResponse } = c.env ?? {};
    // A response that has closed already would never be counted down.
    if (outgoing === undefined || outgoing.closed || outgoing.destroyed) return;
    const client = clientAddress(c, trustedProxies);
    const count = open.get(client) ?? 0;
    if (count >= LIMITS.downloadsPerClient) {
      throw new AppError("rate_limited", {
        message: `Your IP address is receiving ${count} whole lists, the maximum; finish one first, or read pages with ?limit=.`,
        retryable: true,
        retryAfterSeconds: 1,
      });
    }
    open.set(client, count + 1);
    outgoing.once("close", () => {
      const left = (open.get(client) ?? 1) - 1;
      if (left > 0) open.set(client, left);
      else open.delete(client);
    });
  };
}

/**
 * The client's IP as a rate limit counts it: an IPv6 client by its /64, which is one subscriber. `X-Forwarded-For`
 * counts only as far as our own `trustedProxies` wrote it; the rest can be forged by the caller.
 */
export function clientAddress(c: Context, trustedProxies: number): string {
  const forwarded = trustedProxies > 0 ? (c.req.header("x-forwarded-for") ?? "").split(",") : [];
  const socket: { remoteAddress?: string } | undefined = c.env?.incoming?.socket;
  const address = forwarded.at(-trustedProxies)?.trim() || socket?.remoteAddress || "unknown";
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIPv6(plain) ? subnet(plain) : plain;
}

function subnet(address: string): string {
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? 0 : tail.split(":").length;
    while (groups.length + after < 8) groups.push("0");
  }
  while (groups.length < 4) groups.push("0");
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
