/** HTTP itself: sizes, types, methods, headers, rates, and several API processes on one database. */
import { afterAll, describe, expect } from "vitest";
import { caller, signIn } from "../support/agent.js";
import { draft, type Json, newPair, ok, signedChallenge, UNKNOWN } from "../support/contracts.js";
import { type ServiceProcess, startServiceProcess } from "../support/programs.js";
import { lazy, openScene } from "../support/world.js";
import { refusal, says, withStack } from "./support/spec.js";

const scene = await openScene();
const KIB = 1024;
const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
const HUNDREDS_OF_REQUESTS_MS = 300_000;
const started: ServiceProcess[] = [];
/** Another API process on the database and chain of the suite's own stack; its request rates are the defaults. */
async function startSecondProcess(): Promise<ServiceProcess> {
  const { stack } = scene.target;
  if (stack === null) throw new Error("A foreign service cannot be doubled.");
  const process = await startServiceProcess({
    DATABASE_URL: stack.databaseUrl,
    RPC_URL: stack.rpcUrl,
    DEPLOYMENT: stack.deploymentPath,
    MASTER_KEY: "11".repeat(32),
  });
  started.push(process);
  return process;
}
const second = lazy(startSecondProcess);
afterAll(async () => {
  await Promise.all(started.map((process) => process.stop()));
});

interface Operation {
  method: string;
  path: string;
  hasBody: boolean;
}

const operations = lazy(async (): Promise<Operation[]> => {
  const { paths } = (await scene.call<Json>("GET", "/openapi.json")).body as Json;
  return Object.entries(paths as Record<string, Json>)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([path, item]) =>
      Object.keys(item).map((method) => ({
        method: method.toUpperCase(),
        path: path
          .replaceAll(/(?<=contracts\/|agents\/)\{[^}]+\}/g, UNKNOWN)
          .replaceAll(/\{[^}]+\}/g, UNKNOWN_ID),
        hasBody: item[method].requestBody !== undefined,
      })),
    );
});

/** `me` is not an address, yet `/v1/agents/{address}/stake` matches any text in that place. */
const matches = (operation: Operation, path: string): boolean =>
  operation.path.replace(UNKNOWN, "me") === path;

describe("Bodies", () => {
  says("a body of more than 256 KiB is 413 `payload_too_large`, on every operation but reads", async () => {
    const agent = await scene.newAgent();
    const large = JSON.stringify({ x: "y".repeat(256 * KIB) });
    for (const { method, path } of await operations()) {
      if (method === "GET") continue;
      expect(refusal(await agent.call(method, path, { body: large })), path).toBe("413 payload_too_large");
    }
  });

  says("a chunked body without a length is counted the same way", async () => {
    const agent = await scene.newAgent();
    const headers = { authorization: `Bearer ${agent.apiKey}`, "content-type": "application/json" };
    const send = (path: string, chunks: string[]) => {
      const body = ReadableStream.from(chunks).pipeThrough(new TextEncoderStream());
      return fetch(scene.url + path, { method: "POST", headers, body, duplex: "half" } as RequestInit);
    };
    expect((await send("/v1/agents/me/profile", ['{"bio":', '"in chunks"}'])).status).toBe(201);
    const response = await send("/v1/contracts", Array(300).fill("y".repeat(KIB))).catch(() => null);
    // The server can close the connection while the client is still sending.
    if (response !== null) expect(response.status).toBe(413);
    expect((await agent.get("/v1/agents/me/api-keys")).status).toBe(200);
  });

  says("a body of exactly 256 KiB is read", async () => {
    const agent = await scene.newAgent();
    const start = JSON.stringify(await draft(scene)).slice(0, -1);
    const filler = (length: number) => `${start},"x":"${"y".repeat(length)}"}`;
    const body = filler(256 * KIB - filler(0).length);
    expect(Buffer.byteLength(body)).toBe(256 * KIB);
    expect((await agent.post("/v1/contracts", body)).status).toBe(402);
    expect((await agent.post("/v1/contracts", `${body} `)).status).toBe(413);
  });

  says(
    "another content type is 415 `unsupported_media_type`, on every operation that takes a body",
    async () => {
      const agent = await scene.newAgent();
      for (const { method, path, hasBody } of await operations()) {
        if (!hasBody) continue;
        for (const type of [
          "text/plain",
          "application/x-www-form-urlencoded",
          "multipart/form-data; boundary=x",
          "text/json",
          "nonsense",
        ]) {
          const refused = await agent.call(method, path, { body: "{}", headers: { "content-type": type } });
          expect(refusal(refused), `${path} ${type}`).toBe("415 unsupported_media_type");
        }
        // For bytes, fetch adds no content type.
        const untyped = await fetch(scene.url + path, {
          method,
          headers: { authorization: `Bearer ${agent.apiKey}` },
          body: new TextEncoder().encode("{}"),
        });
        expect(untyped.status, path).toBe(415);
      }
    },
  );

  says("JSON with a charset, and other spellings of its type, are read", async () => {
    const agent = await scene.newAgent();
    for (const type of [
      "application/json; charset=utf-8",
      "APPLICATION/JSON",
      "application/json;charset=UTF-8",
      "application/merge-patch+json",
    ]) {
      const headers = { "content-type": type };
      expect((await agent.post("/v1/agents/me/profile", { bio: type }, headers)).status).toBe(201);
    }
  });
});

describe("Methods and paths", () => {
  says("a method that a path does not have is 405 `method_not_allowed` with `Allow`", async () => {
    const all = await operations();
    for (const path of new Set(all.map((operation) => operation.path))) {
      const allowed = all
        .filter((one) => one.path === path || matches(one, path))
        .map(({ method }) => method);
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        if (allowed.includes(method)) continue;
        const refused = await scene.call(method, path);
        expect(refusal(refused), `${method} ${path}`).toBe("405 method_not_allowed");
        const allow = refused.headers.get("allow")?.split(", ") ?? [];
        expect(allow).toEqual(expect.arrayContaining([...allowed, "OPTIONS"]));
        expect(allow.includes("HEAD")).toBe(allowed.includes("GET"));
      }
    }
  });

  says("an unknown path is 404 `not_found`", async () => {
    for (const path of [
      "/v1",
      "/v1/",
      "/v2/contracts",
      "/v1/contract",
      "/v1/contracts/x/y/z",
      "/v1/protocol/",
      "/v1/protocol/x",
      "/v1/PROTOCOL",
    ]) {
      const { status, error } = await scene.call("GET", path);
      expect([status, error?.code], path).toEqual([404, "not_found"]);
    }
  });

  says("HEAD responds like GET, without a body", async () => {
    const { status, headers, body } = await scene.call("HEAD", "/v1/protocol");
    expect([status, body, headers.get("content-type")?.split(";")[0]]).toEqual([200, "", "application/json"]);
  });

  says("a read that is repeated with its `ETag` as `If-None-Match` is 304, without a body", async () => {
    const etag = (await scene.call("GET", "/v1/protocol")).headers.get("etag") ?? "";
    const headers = { "if-none-match": etag };
    const { status, body } = await scene.call("GET", "/v1/protocol", { headers });
    expect([status, body]).toEqual([304, ""]);
  });
});

describe("Headers", () => {
  says(
    "every response carries `X-Request-Id`: the caller's if it is well formed, otherwise a new one",
    async () => {
      const agent = await scene.newAgent();
      const probes: [string, string][] = [
        ["GET", "/v1/protocol"],
        ["GET", "/v1/nothing"],
        ["DELETE", "/v1/protocol"],
        ["GET", "/v1/contracts"],
        ["POST", "/v1/agents/x/challenge"],
        ["OPTIONS", "/v1/contracts"],
        ["GET", "/openapi.json"],
      ];
      for (const [method, path] of probes) {
        const own = await scene.call(method, path, { headers: { "x-request-id": "my-id_1.2" } });
        expect(own.headers.get("x-request-id"), path).toBe("my-id_1.2");
        const ids = [];
        for (const given of [undefined, "", "has space", "x".repeat(129), "<script>", '"quoted"', "ü"]) {
          const headers: Record<string, string> = given === undefined ? {} : { "x-request-id": given };
          ids.push((await scene.call(method, path, { headers })).headers.get("x-request-id"));
        }
        for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/);
        expect(new Set(ids).size).toBe(ids.length);
      }
      const quote = await agent.post("/v1/contracts", await draft(scene), { "x-request-id": "quoted" });
      expect([quote.status, quote.headers.get("x-request-id")]).toEqual([402, "quoted"]);
    },
  );

  says("CORS is open for reads, and the payment headers are exposed", async () => {
    const origin = { origin: "https://agent.example" };
    for (const [method, path] of [
      ["GET", "/v1/protocol"],
      ["GET", "/v1/contracts"],
      ["GET", "/v1/nothing"],
      ["DELETE", "/v1/contracts"],
    ] as const) {
      const { headers } = await scene.call(method, path, { headers: origin });
      expect(headers.get("access-control-allow-origin"), path).toBe("*");
      const exposed = headers.get("access-control-expose-headers")?.toLowerCase() ?? "";
      for (const name of [
        "payment-required",
        "payment-response",
        "x-payment-response",
        "x-request-id",
        "retry-after",
      ]) {
        expect(exposed).toContain(name);
      }
      expect(headers.get("access-control-allow-credentials")).toBeNull();
    }
    const asked = [
      ...["authorization", "content-type", "payment-signature", "x-payment"],
      ...["x-402-version", "access-control-expose-headers"],
    ];
    const preflight = await scene.call("OPTIONS", "/v1/contracts", {
      headers: {
        ...origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": asked.join(),
      },
    });
    expect(preflight.status).toBe(204);
    const allowed = preflight.headers.get("access-control-allow-headers")?.toLowerCase().split(",");
    expect(allowed).toEqual(expect.arrayContaining(asked));
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST");
  });

  says("no response can be sniffed, framed or cached by others", async () => {
    const agent = await scene.newAgent();
    const answers = [
      await scene.call("GET", "/v1/protocol"),
      await scene.call("GET", "/v1/contracts"),
      await scene.call("GET", "/v1/nothing"),
      await scene.call("PUT", "/v1/protocol"),
      await agent.get("/v1/agents/me/api-keys"),
      await agent.post("/v1/contracts", await draft(scene)),
      await agent.post("/v1/contracts", "{"),
      await agent.post("/v1/contracts", "x".repeat(300 * KIB)),
    ];
    for (const { status, headers } of answers) {
      expect(headers.get("x-content-type-options"), String(status)).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("cache-control")).toMatch(/no-store|private/);
      expect(headers.get("x-powered-by")).toBeNull();
      expect(headers.get("server")).toBeNull();
    }
  });
});

describe("Request rates of a separate process", () => {
  const windows = (headers: Headers) =>
    ["limit", "remaining", "reset"].map((name) => Number(headers.get(`ratelimit-${name}`)));

  withStack(
    "300 reads and 60 writes a minute per address: `429 rate_limited`, `Retry-After`, `RateLimit` headers",
    async () => {
      const { url } = await second();
      const agent = await scene.newAgent();
      const call = caller(url, { authorization: `Bearer ${agent.apiKey}` });
      for (const [limit, send] of [
        [300, () => call("GET", `/v1/contracts/${UNKNOWN}`)],
        [60, () => call("POST", `/v1/contracts/${UNKNOWN}/approve`)],
      ] as const) {
        const first = await send();
        expect(first.status).toBe(404);
        expect(windows(first.headers).slice(0, 2)).toEqual([limit, limit - 1]);
        const rest = [];
        for (let i = 0; i < limit + 5; i++) rest.push(await send());
        const refused = rest.filter(({ status }) => status === 429);
        // A new minute can begin meanwhile.
        const windowed = rest.findIndex(({ headers }) => windows(headers)[1] === limit - 1);
        if (windowed === -1) expect(refused).toHaveLength(6);
        for (const { error, headers } of refused) {
          expect(error?.code).toBe("rate_limited");
          expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
          expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(60);
          expect(windows(headers)[1]).toBe(0);
          expect(headers.get("ratelimit")).toMatch(/^"(reads|writes)";r=0;t=\d+$/);
          expect(headers.get("ratelimit-policy")).toMatch(/^"(reads|writes)";q=\d+;w=60$/);
        }
      }
      // Another address is not affected.
      const other = await scene.newAgent();
      const others = caller(url, { authorization: `Bearer ${other.apiKey}` });
      expect((await others("GET", `/v1/contracts/${UNKNOWN}`)).status).toBe(404);
    },
    HUNDREDS_OF_REQUESTS_MS,
  );

  withStack("10 challenges a minute per address, 60 a minute per IP without a key", async () => {
    const { url } = await startSecondProcess();
    const call = caller(url);
    const challenge = (byte: string) => call("POST", `/v1/agents/0x${byte.repeat(20)}/challenge`);
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await challenge("1a")).status);
    for (let i = 0; i < 12; i++) statuses.push((await challenge("1A")).status);
    expect(statuses.slice(0, 10)).toEqual(Array(10).fill(200));
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(4);
    // More than two minutes allow, because a new minute can begin meanwhile.
    const reads = await Promise.all(Array.from({ length: 130 }, () => call("GET", "/v1/protocol")));
    expect(reads.map(({ status }) => status)).toContain(429);
    // An unknown key counts as no key, and a header that none of our proxies wrote changes nothing.
    for (const headers of [
      { authorization: "Bearer wc_test_x" },
      { "x-forwarded-for": "9.9.9.9" },
    ] as const) {
      const more = await Promise.all(
        Array.from({ length: 130 }, () => call("GET", "/v1/contracts", { headers })),
      );
      expect(more.map(({ status }) => status)).toContain(429);
    }
    // Each caller with a key has a separate limit.
    const agent = await scene.newAgent();
    const keyed = caller(url, { authorization: `Bearer ${agent.apiKey}` });
    expect((await keyed("GET", "/v1/agents/me/api-keys")).status).toBe(200);
  });

  withStack("all limits are served by the public `GET /v1/limits`", async () => {
    const { requests } = ok(await caller((await second()).url)<Json>("GET", "/v1/limits"));
    expect(requests).toMatchObject({
      bodyBytes: 256 * KIB,
      readsPerMinute: 300,
      writesPerMinute: 60,
      anonymousPerMinute: 60,
      challengesPerMinute: 10,
      pageSize: 50,
      maxPageSize: 200,
    });
  });
});

describe("Two API processes on one database", () => {
  withStack("a revoked key stops working at once on every process", async () => {
    const { url } = await second();
    for (let round = 0; round < 5; round++) {
      const agent = await scene.newAgent();
      const reads = [scene.url, url].map((base) => {
        const call = caller(base, { authorization: `Bearer ${agent.apiKey}` });
        return async () => (await call("GET", "/v1/agents/me/api-keys")).status;
      });
      for (const read of reads) expect(await read()).toBe(200);
      const body = await signedChallenge(scene, agent);
      const [revokeAt] = round % 2 === 0 ? [scene.url] : [url];
      ok(await caller(revokeAt as string)("POST", `/v1/agents/${agent.address}/api-key/revoke`, { body }));
      // No request sent after the response succeeds, on any process.
      const after = await Promise.all(
        [0, 1, 2, 3, 4, 5].map((i) => (reads[i % 2] as () => Promise<number>)()),
      );
      expect(after).toEqual(Array(6).fill(401));
    }
  });

  withStack("a key works, and a challenge is redeemed once, on whichever process", async () => {
    const { url } = await second();
    const agent = await signIn({ url, chainId: scene.chainId });
    const call = caller(scene.url, { authorization: `Bearer ${agent.apiKey}` });
    expect((await call("GET", "/v1/agents/me/api-keys")).status).toBe(200);
    const body = await signedChallenge(scene, agent);
    const path = `/v1/agents/${agent.address}/api-key`;
    const answers = await Promise.all(
      [scene.url, url, scene.url, url].map((base) => caller(base)("POST", path, { body })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400, 400]);
  });

  withStack("an action requested from both at the same moment is one action", async () => {
    const { url } = await second();
    const { client } = await newPair(scene);
    const { id } = ok(await client.pay<Json>("/v1/contracts", await draft(scene)));
    const headers = { authorization: `Bearer ${client.apiKey}` };
    const answers = await Promise.all(
      [scene.url, url].map((base) => caller(base, headers)<Json>("POST", `/v1/contracts/${id}/cancel`)),
    );
    for (const { status, error } of answers)
      expect(error?.code ?? status).toSatisfy((it) => it === 200 || it === "conflict");
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    const seen = await Promise.all(
      [scene.url, url].map(
        async (base) => ok(await caller(base, headers)<Json>("GET", `/v1/contracts/${id}`)).status,
      ),
    );
    expect(seen).toEqual(["cancelled-by-initiator", "cancelled-by-initiator"]);
  });

  withStack("profile versions are counted across both", async () => {
    const { url } = await second();
    const agent = await scene.newAgent();
    const headers = { authorization: `Bearer ${agent.apiKey}` };
    const answers = await Promise.all(
      Array.from({ length: 14 }, (_, i) =>
        caller(i % 2 === 0 ? scene.url : url, headers)("POST", "/v1/agents/me/profile", {
          body: { bio: `${i}` },
        }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(10);
  });
});
