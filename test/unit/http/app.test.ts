import { z } from "@hono/zod-openapi";
import { beforeAll, describe, expect, it } from "vitest";
import { data, operation } from "../../../src/http/operation.js";
import { AUTHORIZED, CALLER, JSON_TYPE, KEY, testApp } from "./fixtures.js";

const { app, logs } = testApp();

const post = (
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = JSON_TYPE,
) =>
  app.request(path, {
    method: "POST",
    headers: { ...AUTHORIZED, ...headers },
    ...(body === undefined ? {} : { body }),
  });
const codeOf = async (response: Response) =>
  ((await response.json()) as { error: { code: string } }).error.code;

describe("unknown routes and methods", () => {
  it.each(["/nowhere", "/v1", "/v1/nothing", "/v1/test/1", "/v2/protocol", "/v1/protocol/x", "/v1/PROTOCOL"])(
    "returns 404 not_found for %s",
    async (path) => {
      const response = await app.request(path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchInlineSnapshot(
        { error: { message: expect.any(String) } },
        `
        {
          "error": {
            "code": "not_found",
            "message": Any<String>,
          },
        }
      `,
      );
    },
  );

  it.each([
    ["DELETE", "/v1/protocol", "GET, HEAD, OPTIONS"],
    ["POST", "/v1/limits", "GET, HEAD, OPTIONS"],
    ["PUT", "/v1/test/1/act", "POST, GET, HEAD, OPTIONS"],
    ["GET", "/v1/test/1/echo", "POST, OPTIONS"],
    ["GET", `/v1/agents/${CALLER}/challenge`, "POST, OPTIONS"],
    ["DELETE", "/v1/agents/me/api-keys", "GET, HEAD, OPTIONS"],
    ["POST", "/health", "GET, HEAD, OPTIONS"],
  ])("returns 405 for %s %s, with Allow", async (method, path, allow) => {
    const response = await app.request(path, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe(allow);
    expect(await codeOf(response)).toBe("method_not_allowed");
  });

  it("supports HEAD wherever it supports GET", async () => {
    const response = await app.request("/health", { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
  });
});

describe("the API document", () => {
  it("is rate limited with the pages, both for machines and for people", async () => {
    const { app } = testApp({ RATE_LIMIT_PAGES: "2" });
    const statuses = [];
    for (const path of ["/docs", "/openapi.json", "/docs", "/contracts.json"]) {
      statuses.push((await app.request(path)).status);
    }
    expect(statuses).toEqual([200, 200, 429, 429]);
  });
});

describe("bodies", () => {
  it("passes the parsed body, the raw bytes and the caller to the route", async () => {
    const body = '{ "budgetOrPrice" : 50.00, "list":[1,2] , "unknown": true}';
    const response = await post("/v1/test/1/echo", body);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      data: {
        json: { budgetOrPrice: "50.00", list: [1, 2] },
        caller: CALLER,
        raw: Buffer.from(body).toString("hex"),
      },
    });
  });

  it("that are truncated are the sender's fault, not our outage", async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"list":['));
        controller.error(Object.assign(new Error("aborted"), { code: "ECONNRESET" }));
      },
    });
    const response = await app.request("/v1/test/1/echo", { method: "POST", body, duplex: "half" } as never);
    expect(response.status).toBe(400);
    expect(await codeOf(response)).toBe("invalid_request");
  });

  it("lists every fault of a body", async () => {
    const response = await post("/v1/test/1/echo", '{"list":[1,"2",null]}');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchInlineSnapshot(`
      {
        "error": {
          "code": "invalid_request",
          "details": [
            {
              "message": "Invalid input: expected string, received undefined",
              "path": "budgetOrPrice",
            },
            {
              "message": "Invalid input: expected number, received string",
              "path": "list.1",
            },
            {
              "message": "Invalid input: expected number, received null",
              "path": "list.2",
            },
          ],
          "message": "budgetOrPrice: Invalid input: expected string, received undefined",
        },
      }
    `);
  });

  it("says where the JSON is invalid", async () => {
    const response = await post("/v1/test/1/echo", '{"budgetOrPrice":');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchInlineSnapshot(`
      {
        "error": {
          "code": "invalid_request",
          "details": [
            {
              "message": "is not valid JSON: Object value expected after ':' at position 17",
              "path": "",
            },
          ],
          "message": "The body is not valid JSON: Object value expected after ':' at position 17.",
        },
      }
    `);
  });

  it.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/json",
    "nonsense",
  ])("returns 415 for %s", async (type) => {
    const response = await post("/v1/test/1/echo", '{"budgetOrPrice":1}', { "Content-Type": type });
    expect(response.status).toBe(415);
    expect(await codeOf(response)).toBe("unsupported_media_type");
  });

  it("returns 415 for a body without a content type", async () => {
    const body = new TextEncoder().encode('{"budgetOrPrice":1}');
    const response = await post("/v1/test/1/echo", body, {});
    expect(response.status).toBe(415);
  });

  it.each(["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"])(
    "accepts the content type %s",
    async (type) => {
      const response = await post("/v1/test/1/echo", '{"budgetOrPrice":1}', { "Content-Type": type });
      expect(response.status).toBe(200);
    },
  );

  it("accepts 256 KiB and returns 413 for a byte more, with or without a Content-Length", async () => {
    const sized = (bytes: number) => `{"budgetOrPrice":"${"1".repeat(bytes - 20)}"}`;
    expect(sized(262_144)).toHaveLength(262_144);
    expect((await post("/v1/test/1/echo", sized(262_144))).status).toBe(200);
    for (const headers of [JSON_TYPE, { ...JSON_TYPE, "Content-Length": "262145" }]) {
      const response = await post("/v1/test/1/echo", sized(262_145), headers);
      expect(response.status).toBe(413);
      expect(await codeOf(response)).toBe("payload_too_large");
    }
  });

  it("never parses the body of an operation that has none", async () => {
    for (const [body, headers] of [
      [undefined, {}],
      [undefined, JSON_TYPE],
      ["", JSON_TYPE],
      ["{}", JSON_TYPE],
      ["{broken", JSON_TYPE],
      ["text", { "Content-Type": "text/plain" }],
    ] as const) {
      const response = await post("/v1/test/1/act", body, headers);
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ data: body ?? "" });
    }
  });

  it("rejects a NUL in path or query", async () => {
    for (const url of ["/v1/test/%00/act", "/v1/test/1/act?q=%00"]) {
      const response = await app.request(url);
      expect(response.status).toBe(400);
      expect(await codeOf(response)).toBe("invalid_request");
    }
  });
});

describe("order of checks", () => {
  it("requires the key before it checks path or body", async () => {
    const response = await app.request("/v1/test/toolong/echo", {
      method: "POST",
      body: "{",
      headers: JSON_TYPE,
    });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("accepts the scheme in any letter case", async () => {
    for (const scheme of ["bearer", "BEARER"]) {
      const response = await post("/v1/test/1/echo", '{"budgetOrPrice":1}', {
        ...JSON_TYPE,
        Authorization: `${scheme} ${KEY}`,
      });
      expect(response.status).toBe(200);
    }
  });
});

describe("every response", () => {
  const answers: [string, RequestInit][] = [
    ["/health", {}],
    ["/v1/nothing", {}],
    ["/v1/broken", {}],
    ["/v1/test/1/echo", { method: "POST" }],
    ["/v1/protocol", { method: "PUT" }],
    [
      "/v1/test/1/echo",
      { method: "POST", headers: { ...AUTHORIZED, "Content-Length": "999999" }, body: "x" },
    ],
  ];

  it.each(answers)("carries a request id, CORS and security headers: %s %o", async (path, init) => {
    const response = await app.request(path, init);
    const { headers } = response;
    expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get("access-control-allow-origin")).toBe("*");
    const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(",");
    expect(exposed).toEqual(
      expect.arrayContaining([
        "payment-required",
        "payment-response",
        "x-payment-response",
        "x-request-id",
        "retry-after",
        "idempotent-replay",
        "vote-salt",
      ]),
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("content-type")).toMatch(/^application\/json/);
  });

  it("repeats the caller's request id if it is well formed, and no other", async () => {
    const idOf = async (given: string) =>
      (await app.request("/health", { headers: { "X-Request-Id": given } })).headers.get("x-request-id");
    expect(await idOf("my-id_1.2")).toBe("my-id_1.2");
    for (const given of ["a b", "x".repeat(129), '"quoted"', "é"]) expect(await idOf(given)).not.toBe(given);
  });

  it("to a preflight request allows the key and the payment headers", async () => {
    const response = await app.request("/v1/contracts", {
      method: "OPTIONS",
      headers: { Origin: "https://agent.example", "Access-Control-Request-Method": "POST" },
    });
    expect(response.status).toBe(204);
    const allowed = response.headers.get("access-control-allow-headers")?.toLowerCase().split(",");
    expect(allowed).toEqual(
      expect.arrayContaining([
        "authorization",
        "content-type",
        "payment-signature",
        "x-payment",
        "x-402-version",
        "access-control-expose-headers",
      ]),
    );
    expect(response.headers.get("access-control-allow-methods")).toContain("POST");
  });
});

describe("ETag", () => {
  const reading = testApp().app;
  const ask = (tag: string, method = "GET") =>
    reading.request("/v1/test/read", { method, headers: { "If-None-Match": tag } });

  beforeAll(() => {
    const returns = data("Text", z.string());
    const declaration = { method: "get", path: "/v1/test/read", auth: "none", tag: "", summary: "" } as const;
    operation({ ...declaration, operationId: "read", returns }, () => () => "text").mount(
      reading,
      {} as never,
    );
  });

  it("is the same for the same bytes, and returned with 304 instead of a known body", async () => {
    const first = await ask("");
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    expect(first.headers.get("cache-control")).toBe("private, no-cache");
    for (const known of [etag, `"other", W/${etag}`, "*"]) {
      const { status, headers, body } = await ask(known);
      expect([status, body, headers.get("etag")]).toEqual([304, null, etag]);
      expect(headers.get("cache-control")).toBe("private, no-cache");
      expect(headers.get("x-request-id")).not.toBeNull();
    }
    expect((await ask(etag, "HEAD")).status).toBe(304);
    expect((await ask('"other"')).status).toBe(200);
  });

  it("is not on errors and writes", async () => {
    expect((await app.request("/v1/nothing")).headers.get("etag")).toBeNull();
    expect((await app.request("/v1/test/1/act", { method: "POST" })).headers.get("etag")).toBeNull();
  });
});

describe("internal errors", () => {
  it("are a plain 500 to the caller, and are logged with the request id", async () => {
    const response = await app.request("/v1/broken", { headers: { "X-Request-Id": "broken-1" } });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({
      error: { code: "internal_error", message: "Something went wrong on our side." },
    });
    const entry = logs
      .map((line) => JSON.parse(line))
      .find(({ requestId, err }) => requestId === "broken-1" && err);
    expect(entry.err.message).toBe("secret detail of the database");
  });

  it("never log keys, payments or bodies", async () => {
    await post("/v1/test/1/echo", '{"budgetOrPrice":"BODY-SECRET"}', {
      ...JSON_TYPE,
      "PAYMENT-SIGNATURE": "PAYMENT-SECRET",
      "X-PAYMENT": "OLD-PAYMENT-SECRET",
    });
    await app.request(`/v1/broken?token=QUERY-SECRET`, { headers: AUTHORIZED });
    const everything = logs.join("");
    expect(everything).toContain('"path":"/v1/test/1/echo"');
    for (const secret of [KEY, "BODY-SECRET", "PAYMENT-SECRET", "QUERY-SECRET"]) {
      expect(everything).not.toContain(secret);
    }
  });
});

describe("OpenAPI", () => {
  it("is generated from the routes", async () => {
    const response = await app.request("/openapi.json");
    expect(response.status).toBe(200);
    const document = (await response.json()) as {
      paths: Record<string, Record<string, { security?: unknown; responses: object }>>;
    };
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([
        "/health",
        "/ready",
        "/v1/protocol",
        "/v1/limits",
        "/v1/agents/{address}/challenge",
        "/v1/agents/{address}/api-key",
        "/v1/agents/{address}/api-key/revoke",
        "/v1/agents/me/api-keys",
      ]),
    );
    expect(document.paths["/v1/agents/me/api-keys"]?.get?.security).toEqual([{ apiKey: [] }]);
    const issue = document.paths["/v1/agents/{address}/api-key"]?.post;
    expect(Object.keys(issue?.responses ?? {})).toEqual([
      "201",
      "400",
      "401",
      "413",
      "415",
      "429",
      "500",
      "503",
    ]);
  });
});
