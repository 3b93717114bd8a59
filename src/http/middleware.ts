/**
 * The router of every resource, and what every request passes: its id and log line, the caller behind its key, security
 * and CORS headers, and request rates. Rates are counted in fixed windows of one minute in this process's memory: no
 * request costs a write, and a slow database causes no refusals. Each API process counts separately.
 */

import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { isIPv6 } from "node:net";
import { OpenAPIHono } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import { matchedRoutes } from "hono/route";
import type { Logger } from "pino";
import type { Config } from "../config.js";
import type { Deps } from "../deps.js";
import { AppError, type ErrorCode, unavailable } from "../errors.js";
import { createCounts } from "../scheduling.js";
import { bearerKey, isWellFormedKey, type KeyOwners } from "./key-owners.js";
import { invalidInput } from "./responses.js";

export interface AppEnv {
  Variables: {
    requestId: string;
    /** Makes a logger whose lines carry the request's id, on demand: an AsyncLocalStorage costs every request more. */
    logger: () => Logger;
    /** The IP address of the request, as limits count it. */
    ip: string;
    /** The body, byte for byte; empty if there was none. */
    rawBody: Buffer;
    /** Address behind the request's API key; null without a valid key. Protected routes read `caller` instead. */
    identity: Address | null;
    /** Looks the address up again. Under /v1. */
    currentIdentity: () => Address | null | Promise<Address | null>;
    /** Whether a rate limit counts the request, which is not beyond it. */
    isWithinRate?: boolean;
    /** Counts the call towards the IP address's limit, whatever its key; throws `429 rate_limited`. Under /v1. */
    limitIp: () => void;
    /** Counts a challenge that the IP address requests for the address; throws `429 rate_limited`. Under /v1. */
    limitChallenges: (address: Address) => void;
    /** Counts the body towards what the IP address can have stored unpaid; throws `429 rate_limited`. Under /v1. */
    limitQuote: () => void;
    /** Counts the response until it closes: see {@link limitDownloads}. */
    limitDownload: (length?: number, kind?: Download) => void;
    /** Throws `429 rate_limited` if the IP address has too many responses to calls left to read. */
    limitCalls: () => void;
    /** Set if the body is not a JSON object; onError responds with it. */
    bodyFault?: AppError;
    /** Set if the response is an error. */
    errorCode?: ErrorCode;
  };
}

/** Context of routes behind `requireKey`. */
export interface CallerEnv {
  Variables: AppEnv["Variables"] & { caller: Address };
}

/** OpenAPI security of endpoints that need an API key. */
export const KEY_SECURITY = [{ apiKey: [] }];

/** A router that responds `400 invalid_request` to a failed schema; each resource exports one, mounted by app.ts. */
export function createRouter(): OpenAPIHono<AppEnv> {
  return new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidInput(result.error.issues);
    },
  });
}

const NO_BODY = Buffer.alloc(0);
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Gives the request an id (the caller's own if well formed) for all its log lines; logs and measures its end. */
export function requestContext({ logger, metrics }: Pick<Deps, "logger" | "metrics">) {
  // The fields of these lines are named here: none needs redaction, which costs more than the rest of a line.
  const ends = logger.child({}, { redact: [] });
  return createMiddleware<AppEnv>(async (c, next) => {
    const given = c.req.header("x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    const startedAt = performance.now();
    c.set("requestId", requestId);
    c.set("logger", () => logger.child({ requestId }));
    c.set("identity", null);
    c.set("rawBody", NO_BODY);
    c.header("X-Request-Id", requestId);

    await next();

    // Only the path: a query string is the caller's data. Headers and bodies are never logged.
    const { method, path } = c.req;
    const { status } = c.res;
    const ms = performance.now() - startedAt;
    const code = c.get("errorCode");
    metrics?.observeRequest({ method, route: routeOf(c), status }, { code, seconds: ms / 1000 });
    const caller = c.get("identity") ?? undefined;
    // A flood beyond the limits, or of what has none, would fill the disk; metrics count it.
    const level = c.get("isWithinRate") ? "info" : "debug";
    const logged = path.slice(0, LOGGED_LENGTH);
    ends[level]({ requestId, method, path: logged, status, code, ms: Math.round(ms), caller }, "request");
  });
}

/** Characters of a path in the log. */
const LOGGED_LENGTH = 200;

/** Pattern of the route that responded. */
function routeOf(c: Context): string {
  return matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path ?? "unmatched";
}

/** Passes only requests with an active API key, and sets `caller`. In a route's `middleware` it runs before validators. */
export const requireKey = createMiddleware<CallerEnv>(async (c, next) => {
  // With a body that it held back, a request could outlive the revocation of its key.
  const caller = isRead(c) ? c.get("identity") : await c.get("currentIdentity")();
  if (caller === null) throw unauthorized();
  c.set("caller", caller);
  await next();
});

/** 401 for a call without an active key, in one form (docs/rules.md 2). */
export const unauthorized = (): AppError =>
  new AppError("unauthorized", {
    message: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
    hint: "Get one with POST /v1/agents/{address}/challenge, then POST /v1/agents/{address}/api-key.",
    headers: { "WWW-Authenticate": "Bearer" },
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

const WINDOW_SECONDS = 60;
/** Beyond this number of counted callers the oldest are dropped, which bounds memory under a flood of new ones. */
const MAX_COUNTED = 100_000;

type RateLimiter = ReturnType<typeof createRateLimiter>;

/** Allows `limit` requests, or units of weight, per key and minute; 0 allows everything. `now` is in milliseconds. */
export function createRateLimiter(limit: number, now: () => number = () => performance.now()) {
  const windows = new Map<string, { count: number; endsAt: number }>();
  return {
    limit,
    /** Counts one request of `key`, or as many as it weighs. */
    take(key: string, weight = 1) {
      const time = now();
      let window = windows.get(key);
      if (window === undefined || window.endsAt <= time) {
        windows.delete(key);
        forgetOldest(windows, time);
        window = { count: 0, endsAt: time + WINDOW_SECONDS * 1000 };
        windows.set(key, window);
      }
      window.count += weight;
      return {
        allowed: limit === 0 || window.count <= limit,
        remaining: Math.max(0, limit - window.count),
        resetSeconds: Math.max(1, Math.ceil((window.endsAt - time) / 1000)),
      };
    },
    giveBack(key: string): void {
      const window = windows.get(key);
      if (window !== undefined) window.count = Math.max(0, window.count - 1);
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
  c.set("isWithinRate", true);
  if (limiter.limit === 0) return;
  const { allowed, remaining, resetSeconds } = limiter.take(key);
  c.header("RateLimit-Policy", `"${name}";q=${limiter.limit};w=${WINDOW_SECONDS}`);
  c.header("RateLimit", `"${name}";r=${remaining};t=${resetSeconds}`);
  c.header("RateLimit-Limit", String(limiter.limit));
  c.header("RateLimit-Remaining", String(remaining));
  c.header("RateLimit-Reset", String(resetSeconds));
  if (allowed) return;
  c.set("isWithinRate", false);
  throw new AppError("rate_limited", {
    message: `More than ${limiter.limit} requests per minute (${name}); retry in ${resetSeconds} s.`,
    retryAfterSeconds: resetSeconds,
  });
}

/**
 * Looks up the key's owner for limits, logs and `requireKey`, then limits reads and writes per address, and everything
 * without a key per IP address. Routes count challenges through what it sets.
 */
export function rateLimit({
  keys,
  config: { rateLimits, environment },
}: {
  keys: KeyOwners;
  config: Pick<Config, "rateLimits" | "environment">;
}) {
  const reads = createRateLimiter(rateLimits.reads);
  const writes = createRateLimiter(rateLimits.writes);
  const anonymous = createRateLimiter(rateLimits.anonymous);
  const challenges = createRateLimiter(rateLimits.challenges);
  /** Anyone can make up keys, and each costs a read of the database. Keys of agents do not count. */
  const unknownKeys = createRateLimiter(rateLimits.reads);
  const quoted = createRateLimiter(LIMITS.newContractBytesPerMinute);

  const lookUp = async (c: Context<AppEnv>, key: string): Promise<Address | null> => {
    if (!isWellFormedKey(key, environment)) return null;
    const ip = c.get("ip");
    takeOrRefuse(c, "keys", unknownKeys, ip);
    let owner: Address | null | undefined;
    try {
      owner = await keys.ownerOf(key);
      return owner;
    } finally {
      if (owner !== null) unknownKeys.giveBack(ip);
    }
  };

  return createMiddleware<AppEnv>(async (c, next) => {
    const key = bearerKey(c.req.header("authorization") ?? "");
    const owner = key === null ? null : (keys.keptOwnerOf(key) ?? (await lookUp(c, key)));
    const limitIp = (): void => takeOrRefuse(c, "anonymous", anonymous, c.get("ip"));
    c.set("identity", owner);
    c.set("currentIdentity", () =>
      key === null || owner === null ? null : (keys.keptOwnerOf(key) ?? keys.ownerOf(key)),
    );
    // Addresses are free: with keys of many, an IP address could do more of what needs no key.
    c.set("limitIp", () => owner !== null && limitIp());
    // By IP address as well: otherwise anyone could use up an address's challenges and keep it from revoking keys.
    c.set("limitChallenges", (address) =>
      takeOrRefuse(c, "challenges", challenges, `${c.get("ip")} ${address}`),
    );
    c.set("limitQuote", () => {
      const { allowed, resetSeconds } = quoted.take(c.get("ip"), c.get("rawBody").length);
      if (allowed) return;
      throw new AppError("rate_limited", {
        message: `Your IP address has posted more than ${LIMITS.newContractBytesPerMinute} bytes of new contracts within a minute; retry in ${resetSeconds} s.`,
        retryAfterSeconds: resetSeconds,
      });
    });
    if (owner === null) limitIp();
    else if (isRead(c)) takeOrRefuse(c, "reads", reads, owner);
    else {
      takeOrRefuse(c, "writes", writes, owner);
      c.get("limitCalls")();
    }
    await next();
  });
}

/** Characters of a response that count as a download. A smaller one costs about as much as its connection. */
const DOWNLOAD_LENGTH = 16 * 1024;
/** Characters that one IP address can have left to read, and all together. */
const DOWNLOADS_LENGTH = 16 * 1024 * 1024;
const ALL_DOWNLOADS_LENGTH = 256 * 1024 * 1024;

/** How an unread response counts: a `read` can be refused; the `outcome` of a call that has taken effect never is. */
type Download = "read" | "outcome";

/**
 * Sets `ip`, and limits the memory that one IP address takes by reading slowly ("Limits per IP address"). After too
 * many unread outcomes, `limitCalls` refuses the next call.
 */
export function limitDownloads({ trustedProxies }: Pick<Config, "trustedProxies">) {
  const unread = { read: createCounts(), outcome: createCounts() };
  let all = 0;
  const requireRoom = (kind: Download, ip: string, length: number, hint: string): void => {
    const pending = unread[kind].count(ip);
    if (pending + length <= DOWNLOADS_LENGTH) return;
    throw new AppError("rate_limited", {
      message: `Your IP address has ${pending} characters of unread responses; the maximum is ${DOWNLOADS_LENGTH}. ${hint}.`,
      retryAfterSeconds: 1,
    });
  };
  const take = (c: Context<AppEnv>, length: number, kind: Download): void => {
    const { outgoing }: { outgoing?: ServerResponse } = c.env ?? {};
    // A response that has closed already would never be counted down.
    if (outgoing === undefined || outgoing.closed || outgoing.destroyed || length < DOWNLOAD_LENGTH) return;
    const ip = c.get("ip");
    if (kind === "read") {
      requireRoom(kind, ip, length, "Read them first, or read smaller pages with ?limit=");
      if (all + length > ALL_DOWNLOADS_LENGTH)
        throw unavailable("Too many responses are left unread. Retry in a second.", 1);
    }
    const add = (characters: number): void => {
      unread[kind].add(ip, characters);
      all += characters;
    };
    add(length);
    outgoing.once("close", () => add(-length));
  };
  return createMiddleware<AppEnv>(async (c, next) => {
    c.set("ip", ipOf(c, trustedProxies));
    const share = DOWNLOADS_LENGTH / LIMITS.downloadsPerClient;
    c.set("limitDownload", (length = share, kind = "read") => take(c, length, kind));
    c.set("limitCalls", () => requireRoom("outcome", c.get("ip"), 0, "Read them first"));
    await next();
  });
}

/** Whether the request changes nothing. */
export const isRead = (c: Context): boolean => c.req.method === "GET" || c.req.method === "HEAD";

/** An address with the port that some proxies write behind it: `1.2.3.4:5`, `[2001:db8::1]:5`. */
const WITH_PORT = /^(?:\[(.+)\]|(\d+(?:\.\d+){3}))(?::\d+)?$/;

/**
 * The IP address of a request as limits count it: IPv6 by its /64, which is one subscriber. `X-Forwarded-For`
 * counts only as far as our own `trustedProxies` wrote it; the rest can be forged by the caller.
 */
function ipOf(c: Context, trustedProxies: number): string {
  const forwarded = trustedProxies > 0 ? (c.req.header("x-forwarded-for") ?? "").split(",") : [];
  const socket: { remoteAddress?: string } | undefined = c.env?.incoming?.socket;
  const given = forwarded.at(-trustedProxies)?.trim() || socket?.remoteAddress || "unknown";
  const [, v6, v4] = WITH_PORT.exec(given) ?? [];
  const plain = (v6 ?? v4 ?? given).replace(/^::ffff:(?=\d+\.)/i, "");
  return isIPv6(plain) ? subnet(plain) : plain;
}

function subnet(address: string): string {
  const [head = [], tail = []] = address.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  const groups = [...head, ...zeros, ...tail].slice(0, 4).map((group) => Number.parseInt(group, 16));
  return `${groups.map((group) => group.toString(16)).join(":")}::/64`;
}
