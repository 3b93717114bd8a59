import { type IncomingMessage, request, type Server } from "node:http";
import { json } from "node:stream/consumers";
import { createAdaptorServer } from "@hono/node-server";
import { z } from "@hono/zod-openapi";
import { beforeAll, describe, expect, it } from "vitest";
import { data, endpoints } from "../../../src/http/endpoint.js";
import { listen } from "../../support/listen.js";
import { AUTHORIZED, JSON_TYPE, testApp } from "./fixtures.js";

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

it("an unknown method is 405 with Allow outside of /v1, too", async () => {
  const response = await app.request("/health", { method: "POST" });
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
  expect(await codeOf(response)).toBe("method_not_allowed");
});

it("the API document and the pages share a limit per client", async () => {
  const { app } = testApp({ RATE_LIMIT_PAGES: "3" });
  const statuses = [];
  for (const path of ["/docs", "/openapi.json", "/simulator?price=x", "/docs", "/contracts.json"]) {
    statuses.push((await app.request(path)).status);
  }
  expect(statuses).toEqual([200, 200, 400, 429, 429]);
  expect((await app.request("/parameters")).headers.get("content-type")).toContain("text/html");
});

describe("a body", () => {
  it("is the sender's fault if it is truncated, not our outage", async () => {
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

  it("is 413 before all of it has arrived if it is too large, announced or not", async () => {
    const server = createAdaptorServer({ fetch: app.fetch }) as Server;
    const { url } = await listen(server);
    for (const length of [{ "Content-Length": "20000000" }, {}]) {
      const headers = { ...AUTHORIZED, ...JSON_TYPE, ...length };
      const outgoing = request(`${url}/v1/test/1/echo`, { method: "POST", headers });
      // Once it has responded, the server can close the connection while the body is still being sent.
      outgoing.on("error", () => {});
      const responding = new Promise<IncomingMessage>((resolve) => outgoing.on("response", resolve));
      outgoing.write(Buffer.alloc(300_000, "x"));
      const response = await responding;
      expect(response.statusCode).toBe(413);
      expect(await json(response)).toMatchObject({ error: { code: "payload_too_large" } });
    }
    expect((await fetch(`${url}/health`)).status).toBe(200);
    server.closeAllConnections();
    server.close();
  });

  it("has every fault listed", async () => {
    const response = await post("/v1/test/1/echo", '{"list":[1,"2",null]}');
    expect(response.status).toBe(400);
    const message = "Invalid input: expected string, received undefined";
    expect(await response.json()).toEqual({
      error: {
        code: "invalid_request",
        message: `budgetOrPrice: ${message}`,
        details: [
          { path: "budgetOrPrice", message },
          { path: "list.1", message: "Invalid input: expected number, received string" },
          { path: "list.2", message: "Invalid input: expected number, received null" },
        ],
      },
    });
  });

  it("is refused with the position of invalid JSON", async () => {
    const response = await post("/v1/test/1/echo", '{"budgetOrPrice":');
    expect(response.status).toBe(400);
    const fault = "is not valid JSON: Object value expected after ':' at position 17";
    expect(await response.json()).toEqual({
      error: {
        code: "invalid_request",
        message: `The body ${fault}.`,
        details: [{ path: "", message: fault }],
      },
    });
  });

  it("is never parsed at an endpoint that has none", async () => {
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
});

it("an internal error carries a request id, CORS and security headers", async () => {
  const { headers } = await app.request("/v1/broken");
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(headers.get("access-control-allow-origin")).toBe("*");
  const exposed = headers.get("access-control-expose-headers")?.toLowerCase().split(",");
  expect(exposed).toEqual(expect.arrayContaining(["idempotent-replay", "vote-salt"]));
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("content-type")).toMatch(/^application\/json/);
});

describe("ETag", () => {
  const reading = testApp().app;
  const ask = (tag: string, method = "GET") =>
    reading.request("/v1/test/read", { method, headers: { "If-None-Match": tag } });

  beforeAll(() => {
    const returns = data("Text", z.string());
    const declaration = { operationId: "read", auth: "none", summary: "" } as const;
    const read = endpoints("").get("/v1/test/read", { ...declaration, returns, handle: () => "text" });
    read.mount(reading, {} as never);
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

describe("lines that a handler logs", () => {
  it("have the id of its request", async () => {
    const { app, logs } = testApp();
    const logging = endpoints("").post("/v1/test/log", {
      operationId: "log",
      auth: "none",
      summary: "",
      returns: data("Text", z.string()),
      async handle({ logger }, { rawBody }) {
        await Promise.resolve();
        logger.info(rawBody.toString());
        return "text";
      },
    });
    logging.mount(app, {} as never);
    const ids = ["r-1", "r-2"];
    const ask = (id: string) =>
      app.request("/v1/test/log", { method: "POST", body: id, headers: { "X-Request-Id": id } });
    await Promise.all(ids.map(ask));
    const lines = logs.map((line) => JSON.parse(line)).filter(({ msg }) => ids.includes(msg));
    expect(lines.map(({ msg, requestId }) => [msg, requestId])).toEqual(ids.map((id) => [id, id]));
  });
});

describe("internal errors", () => {
  it("are a plain 500 to the caller, and are logged with the request id", async () => {
    const response = await app.request("/v1/broken", { headers: { "X-Request-Id": "broken-1" } });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({
      error: {
        code: "internal_error",
        message:
          "Internal error. Retry the identical request; if this persists, report the X-Request-Id of this response.",
      },
    });
    const entry = logs
      .map((line) => JSON.parse(line))
      .find(({ requestId, err }) => requestId === "broken-1" && err);
    expect(entry.err.message).toBe("secret detail of the database");
  });
});
