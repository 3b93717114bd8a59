import { createServer, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ConnectionError, ServiceError } from "@working-contracts/client/errors";
import { createHttp, type HttpOptions } from "@working-contracts/client/http";
import { call, everyEvent, everyItem } from "@working-contracts/client/session";
import { afterAll, describe, expect, it } from "vitest";
import { listen } from "../../support/listen.js";

const open: Server[] = [];
afterAll(() => {
  for (const server of open) server.close().closeAllConnections();
});

/** A server that answers the n-th request, counted from one, as `answer` says, and a client of it. */
async function httpTo(
  answer: (response: ServerResponse, count: number) => void,
  options: Partial<HttpOptions> = {},
) {
  let count = 0;
  const server = createServer((_, response) => answer(response, ++count));
  const { url: baseUrl } = await listen(server);
  open.push(server);
  const http = createHttp({ baseUrl, fetch, patienceMs: 1000, ...options });
  return { http, apiKey: "", requests: () => count };
}

const fail = (response: ServerResponse, status: number, retryAfter = "0"): void => {
  const error = { code: "service_unavailable", message: "Try again later." };
  response
    .writeHead(status, { "retry-after": retryAfter, "x-request-id": "one" })
    .end(JSON.stringify({ error }));
};
const succeed = (response: ServerResponse): void => void response.end(JSON.stringify({ data: { ok: true } }));
const half = (response: ServerResponse): void => void response.writeHead(200).write('{"data":');
/** Collects garbage while a body is open: Node.js then loses the abort of its request. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let count = 0; count < 4; count++) {
    await delay(50);
    collect();
  }
}

describe("a request", () => {
  it("is retried after a temporary refusal, and not after another one", async () => {
    const session = await httpTo((response, count) =>
      count === 1 ? fail(response, 503) : count === 2 ? succeed(response) : fail(response, 500),
    );
    expect(await call(session, "GET /v1/network")).toEqual({ data: { ok: true } });
    const error = await call(session, "GET /v1/network").catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ code: "service_unavailable", status: 500, requestId: "one" });
    expect(session.requests()).toBe(3);
  });

  it("is sent once if it could be executed twice", async () => {
    const session = await httpTo((response) => fail(response, 503));
    const input = { path: { address: "0x" }, body: { challengeId: "", signature: "0x" } };
    const revocation = call(session, "POST /v1/agents/{address}/api-key/revoke", input);
    await expect(revocation).rejects.toMatchObject({ status: 503 });
    expect(session.requests()).toBe(1);
  });

  // These three wait for the shortest retry.
  it.concurrent("ends when patience is over if it hangs", async () => {
    const session = await httpTo((response, count) => {
      if (count === 1) fail(response, 503);
    });
    const error = await call(session, "GET /v1/network").catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("timeout");
    expect(session.requests()).toBe(2);
  });

  it.concurrent.each([
    ["", {}],
    [" of a caller with a signal", { signal: new AbortController().signal }],
  ])(
    "ends when patience is over if its response stops in the middle%s, also after a garbage collection",
    async (_, options) => {
      const session = await httpTo(
        (response, count) => (count === 1 ? fail(response, 503) : half(response)),
        options,
      );
      const error = call(session, "GET /v1/network").catch((thrown) => thrown);
      await expect.poll(session.requests).toBe(2);
      await collectGarbage();
      expect(await error).toBeInstanceOf(ConnectionError);
      expect((await error).message).toContain("timeout");
    },
  );

  it("ends if the caller aborts it after its response stopped in the middle, also after a garbage collection", async () => {
    const aborting = new AbortController();
    const session = await httpTo(half, { signal: aborting.signal });
    const reading = call(
      { ...session, http: session.http.until(new AbortController().signal) },
      "GET /v1/network",
    );
    const error = reading.catch((thrown) => thrown);
    await expect.poll(session.requests).toBe(1);
    await collectGarbage();
    aborting.abort(new Error("enough"));
    expect((await error).message).toBe("enough");
  });

  it("is not retried without end if the service names a pause in the past", async () => {
    const session = await httpTo(
      (response, count) => (count > 20 ? succeed(response) : fail(response, 503, "-1e12")),
      { patienceMs: 300 },
    );
    await expect(call(session, "GET /v1/network")).rejects.toMatchObject({ status: 503 });
  });

  it("waits for a pause that is longer than a timer can measure", async () => {
    const aborting = new AbortController();
    const session = await httpTo((response) => fail(response, 503, "2147484"), {
      patienceMs: Infinity,
      signal: aborting.signal,
    });
    const waiting = call(session, "GET /v1/network").catch((error) => error);
    await expect.poll(session.requests).toBe(1);
    await delay(100);
    expect(session.requests()).toBe(1);
    aborting.abort(new Error("enough"));
    expect((await waiting).message).toBe("enough");
  });

  it("ends if its response is too long", async () => {
    const bodyOf = (mebibytes: number) => `{"data":"${"x".repeat(mebibytes * 2 ** 20)}"}`;
    let body = bodyOf(8);
    const http = createHttp({ baseUrl: "http://x", patienceMs: 0, fetch: async () => new Response(body) });
    const session = { http, apiKey: "" };
    const checkpoints = () => call(session, "GET /v1/contracts/{id}/checkpoints", { path: { id: "0x" } });
    await expect(call(session, "GET /v1/network")).rejects.toThrow("the response is longer than");
    await checkpoints();
    body = bodyOf(64);
    await expect(checkpoints()).rejects.toThrow("the response is longer than");
  });

  it("is not sent to a URL with a password, which no message repeats", () => {
    for (const baseUrl of ["https://user:s3cret@x", "https://:s3cret@x"])
      expect(() => createHttp({ baseUrl, patienceMs: 0, fetch })).toThrow(/^(?!.*s3cret).*password/);
  });

  it("is not repeated forever for a list or a log that never ends", async () => {
    let left = 50_000;
    const list = everyItem(async () => ({ data: [], nextCursor: left-- > 0 ? "more" : null }));
    await expect(list.next()).rejects.toThrow("did not end");
    const log = everyEvent(async () => ({ data: [], nextAfter: "1", hasMore: left-- > 0 }), {});
    await expect(log.next()).rejects.toThrow("did not end");
  });

  it("ends with the caller's reason if the caller aborts it", async () => {
    const aborting = new AbortController();
    const session = await httpTo(() => aborting.abort(new Error("enough")), { signal: aborting.signal });
    await expect(call(session, "GET /v1/network")).rejects.toThrow("enough");
  });

  it("is sent once without patience, and may take its time", async () => {
    const session = await httpTo((response) => void setTimeout(() => succeed(response), 200), {
      patienceMs: 0,
    });
    expect(await call(session, "GET /v1/network")).toEqual({ data: { ok: true } });
  });

  it("takes an idempotency key only if the operation does", async () => {
    const keys: (string | null)[] = [];
    const recording: typeof fetch = (url, init) => {
      keys.push(new Headers(init?.headers).get("idempotency-key"));
      return fetch(url, init);
    };
    const session = await httpTo(succeed, { fetch: recording });
    await call(session, "POST /v1/agents/me/unstake", { key: "once" });
    // @ts-expect-error The service would ignore it.
    await call(session, "POST /v1/sessions", { key: "once" });
    expect(keys).toEqual(["once", null]);
  });
});
