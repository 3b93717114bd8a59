import { EventEmitter } from "node:events";
import type { Context } from "hono";
import { describe, expect, it } from "vitest";
import { sendJson, sendStored } from "../../../../src/http/endpoint.js";
import { createKey } from "../../../../src/http/key-owners.js";
import { createRateLimiter, createRouter, limitDownloads } from "../../../../src/http/middleware.js";
import { onError } from "../../../../src/http/responses.js";
import { ASSETS } from "../../../../src/pages/layout.js";
import { AUTHORIZED, CALLER, KEY, testApp } from "../fixtures.js";

describe("a limiter", () => {
  it("allows the limit in a window, and resets after it", () => {
    let now = 0;
    const limiter = createRateLimiter(3, () => now);
    const take = () => limiter.take("a").allowed;
    expect([take(), take(), take(), take()]).toEqual([true, true, true, false]);
    now = 59_999;
    expect(limiter.take("a")).toEqual({ allowed: false, remaining: 0, resetSeconds: 1 });
    now = 60_000;
    expect(limiter.take("a")).toEqual({ allowed: true, remaining: 2, resetSeconds: 60 });
  });

  it("stays bounded under a flood of new keys, and forgets the oldest first", () => {
    const limiter = createRateLimiter(1, () => 0);
    for (let i = 0; i < 150_000; i++) limiter.take(`key-${i}`);
    expect(limiter.take("key-149999").allowed).toBe(false);
    expect(limiter.take("key-0").allowed).toBe(true);
  });
});

describe("downloads", () => {
  const MIB = 2 ** 20;
  const IP = "192.0.2.1";

  /** Sends requests whose responses no one reads; `read` reads the oldest one. */
  function slowReaderOf(app: Pick<ReturnType<typeof createRouter>, "request">) {
    const open: EventEmitter[] = [];
    return {
      async send(
        path: string,
        { ip = IP, keyless = false, ...init }: RequestInit & { ip?: string; keyless?: boolean } = {},
      ): Promise<number> {
        const outgoing = new EventEmitter();
        const headers = {
          "X-Forwarded-For": ip,
          "Content-Type": "application/json",
          ...(keyless ? {} : AUTHORIZED),
        };
        const { status } = await app.request(path, { ...init, headers }, { outgoing });
        if (status < 400) open.push(outgoing);
        return status;
      },
      read: () => open.shift()?.emit("close"),
    };
  }

  function sized() {
    const app = createRouter();
    app.onError(onError);
    app.use(async (c, next) => {
      c.set("logger", (() => ({ error() {} })) as never);
      await next();
    });
    app.use(limitDownloads({ trustedProxies: 1 }));
    const textOf = (c: Context) => "x".repeat(Number(c.req.param("megabytes")) * MIB);
    app.on(["GET", "POST"], "/:megabytes", (c) => sendJson(c, textOf(c), 200));
    app.post("/stored/:megabytes/:replay", (c) => {
      const headers: Record<string, string> =
        c.req.param("replay") === "true" ? { "Idempotent-Replay": "true" } : {};
      return sendStored(c, { status: 200, headers, body: textOf(c) });
    });
    return slowReaderOf(app);
  }

  it("are limited by what a client has left to read", async () => {
    const { send, read } = sized();
    for (let i = 0; i < 10; i++) expect(await send("/1.5")).toBe(200);
    expect(await send("/1.5")).toBe(429);
    expect(await send("/0.01"), "small ones are free").toBe(200);
    expect(await send("/1.5", { ip: "192.0.2.2" })).toBe(200);
    read();
    expect(await send("/1.5")).toBe(200);
  });

  it("are limited by what all clients have left to read together", async () => {
    const { send, read } = sized();
    for (let i = 0; i < 16; i++) expect(await send("/15.9", { ip: `192.0.2.${i}` })).toBe(200);
    expect(await send("/15.9", { ip: "192.0.2.99" })).toBe(503);
    read();
    expect(await send("/15.9", { ip: "192.0.2.99" })).toBe(200);
  });

  it("are counted apart for calls that have taken effect, and the next call is refused before it begins", async () => {
    const { app } = testApp({ TRUSTED_PROXIES: "1" });
    const { send, read } = slowReaderOf(app);
    let calls = 0;
    app.on(["GET", "POST"], "/v1/test/long/:megabytes", (c) => {
      if (c.req.method === "POST") calls++;
      return sendJson(c, "x".repeat(Number(c.req.param("megabytes")) * MIB), 200);
    });
    const call = (megabytes: number) => send(`/v1/test/long/${megabytes}`, { method: "POST" });
    for (const [megabytes, status] of [
      [15.9, 200],
      [1, 429],
    ])
      expect(await send(`/v1/test/long/${megabytes}`), "a read").toBe(status);
    expect([await call(7), await call(7), await call(7)]).toEqual([200, 200, 200]);
    expect(await call(0.001)).toBe(429);
    expect(calls).toBe(3);
    const revoke = { method: "POST", body: "{}", keyless: true };
    expect(await send(`/v1/agents/${CALLER}/api-key/revoke`, revoke), "a call without a key").toBe(400);
    for (let i = 0; i < 2; i++) read();
    expect(await call(0.001)).toBe(200);
  });

  it("can be refused also for replays", async () => {
    const { send } = sized();
    for (let i = 0; i < 2; i++) expect(await send("/stored/7/true", { method: "POST" })).toBe(200);
    expect(await send("/stored/7/true", { method: "POST" })).toBe(429);
    expect(await send("/stored/7/false", { method: "POST" }), "the first response").toBe(200);
  });

  it.each(["/docs", "/openapi.json", ASSETS.wallet.path])("count for %s", async (path) => {
    const { app } = testApp({ RATE_LIMIT_PAGES: "0", TRUSTED_PROXIES: "1" });
    const { send } = slowReaderOf(app);
    const statuses = new Set<number>();
    for (let i = 0; i < 1_000 && !statuses.has(429); i++) statuses.add(await send(path));
    expect([...statuses]).toEqual([200, 429]);
  });
});

describe("requests", () => {
  const statuses = async (count: number, request: () => Response | Promise<Response>) => {
    const seen: number[] = [];
    for (let i = 0; i < count; i++) seen.push((await request()).status);
    return seen;
  };

  it("are limited per client without a valid key, and trust only our own proxies", async () => {
    const { app } = testApp({ RATE_LIMIT_ANONYMOUS: "2", TRUSTED_PROXIES: "1" });
    const from = (forwarded: string) => () =>
      app.request("/v1/test/1/act", {
        headers: { "X-Forwarded-For": forwarded, Authorization: "Bearer nonsense" },
      });
    expect(await statuses(2, from("1.1.1.1"))).toEqual([200, 200]);
    const refused = await from("1.1.1.1")();
    const message = expect.stringMatching(/^More than 2 requests per minute.*; retry in \d+ s\.$/);
    expect(await refused.json()).toEqual({ error: { code: "rate_limited", message, retryable: true } });
    expect(refused.headers.get("x-request-id")).not.toBeNull();
    expect(refused.headers.get("access-control-allow-origin")).toBe("*");
    expect(await statuses(1, from("2.2.2.2"))).toEqual([200]);
    // Entries that the client writes in front of our proxy's entry change nothing.
    expect(await statuses(1, from("9.9.9.9, 1.1.1.1"))).toEqual([429]);
    // One IPv6 subscriber has one /64.
    expect(await statuses(2, from("2001:db8:1:2::1"))).toEqual([200, 200]);
    expect(await statuses(1, from("2001:db8:1:2:ffff::9"))).toEqual([429]);
    expect(await statuses(1, from("2001:db8:1:3::1"))).toEqual([200]);
    // `::` can stand for groups of the /64, too.
    expect(await statuses(2, from("2a00::5:1:2:3:4"))).toEqual([200, 200]);
    expect(await statuses(1, from("2a00::6:1:2:3:4"))).toEqual([200]);
    expect(await statuses(1, from("2a00:0:0:5::9"))).toEqual([429]);
    // Some proxies write the connection's port, too.
    expect(await statuses(2, from("3.3.3.3:1"))).toEqual([200, 200]);
    expect(await statuses(1, from("3.3.3.3:2"))).toEqual([429]);
    expect(await statuses(1, from("[2001:db8:1:2:ffff::9]:443"))).toEqual([429]);

    const { app: direct } = testApp({ RATE_LIMIT_ANONYMOUS: "1" });
    const spoofed = (ip: string) => direct.request("/v1/test/1/act", { headers: { "X-Forwarded-For": ip } });
    expect((await spoofed("1.1.1.1")).status).toBe(200);
    expect((await spoofed("2.2.2.2")).status).toBe(429);
  });

  it("are limited by their bytes and client if they store new contracts, whatever key they carry", async () => {
    const { app } = testApp({ TRUSTED_PROXIES: "1" });
    app.post("/v1/test/quote", (c) => {
      c.get("limitQuote")();
      return c.text("");
    });
    const body = "x".repeat(200 * 1024);
    const quote = (ip: string) =>
      app.request("/v1/test/quote", {
        method: "POST",
        body,
        headers: { ...AUTHORIZED, "X-Forwarded-For": ip },
      });
    expect(await statuses(163, () => quote("192.0.2.1"))).toEqual(Array(163).fill(200));
    expect(await statuses(1, () => quote("192.0.2.1"))).toEqual([429]);
    expect(await statuses(1, () => quote("192.0.2.2"))).toEqual([200]);
  });

  it("are limited per client if they sign in, whatever key they carry", async () => {
    const { app } = testApp({ RATE_LIMIT_ANONYMOUS: "2" });
    for (const path of ["challenge", "api-key", "api-key/revoke"]) {
      const agent = path === "challenge" ? "cd" : "ef";
      const init = { method: "POST", headers: AUTHORIZED };
      const response = await app.request(`/v1/agents/0x${agent.repeat(20)}/${path}`, init);
      expect(response.headers.get("ratelimit-policy"), path).toContain('"anonymous";q=2');
      expect(response.status === 429, path).toBe(path === "api-key/revoke");
    }
    const read = await app.request("/v1/test/1/act", { headers: AUTHORIZED });
    expect(read.status).toBe(200);
  });

  it("read nothing beyond a limit per client with made-up keys, and never count keys of agents", async () => {
    let lookups = 0;
    const keys = {
      keptOwnerOf: () => undefined,
      ownerOf: async (key: string) => {
        lookups += 1;
        return key === KEY ? CALLER : null;
      },
    };
    const { app } = testApp({ RATE_LIMIT_READS: "3", RATE_LIMIT_WRITES: "100" }, { keys });
    const withKey = (key: string) => () =>
      app.request("/v1/test/1/act", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
    expect(await statuses(10, withKey(KEY))).toEqual(Array(10).fill(200));
    const madeUp = Array.from({ length: 5 }, () => createKey("test").apiKey);
    const seen = await Promise.all(madeUp.map((key) => withKey(key)()));
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429]);
    expect(lookups).toBe(13);
  });

  it("are logged for debugging only if no limit allowed them, so that a flood does not fill the disk", async () => {
    const { app, logs } = testApp({ RATE_LIMIT_ANONYMOUS: "1" });
    expect(await statuses(2, () => app.request("/v1/test/1/act"))).toEqual([200, 429]);
    // Nothing limits these.
    for (const path of ["/health", "/assets/none"]) await app.request(path);
    const lines = logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
    expect(lines.map(({ status, level }) => [status, level])).toEqual([
      [200, 30],
      [429, 20],
      [200, 20],
      [404, 20],
    ]);
  });

  it("are not limited if the limit is 0, or on probes", async () => {
    const { app } = testApp();
    expect(new Set(await statuses(500, () => app.request("/v1/test/1/act")))).toEqual(new Set([200]));
    const { app: limited } = testApp({ RATE_LIMIT_ANONYMOUS: "1" });
    expect(await statuses(3, () => limited.request("/health"))).toEqual([200, 200, 200]);
  });

  it("are limited per address and client if they get challenges, so that no one can keep an address from revoking its keys", async () => {
    const { app } = testApp({ RATE_LIMIT_CHALLENGES: "1", TRUSTED_PROXIES: "1" });
    const challenge = (address: string, ip = "192.0.2.1") =>
      app.request(`/v1/agents/${address}/challenge`, { method: "POST", headers: { "x-forwarded-for": ip } });
    // The fixture has no chain: only the limit matters here.
    expect((await challenge(CALLER)).status).not.toBe(429);
    const refused = await challenge(`0x${CALLER.slice(2).toUpperCase()}`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("ratelimit-policy")).toBe('"challenges";q=1;w=60');
    expect((await challenge(CALLER, "192.0.2.2")).status).not.toBe(429);
    expect((await challenge(`0x${"cd".repeat(20)}`)).status).not.toBe(429);
    // A malformed address is not counted.
    expect((await challenge("0x12")).status).toBe(400);
  });
});
