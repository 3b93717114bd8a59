import { createServer, type ServerResponse } from "node:http";
import { ConnectionError, ServiceError } from "@working-contracts/client/errors";
import { createHttp, type HttpOptions } from "@working-contracts/client/http";
import { call } from "@working-contracts/client/session";
import { afterEach, describe, expect, it } from "vitest";
import { listen } from "../../support/listen.js";

let close: (() => void) | undefined;
afterEach(() => close?.());

/** A server that answers the n-th request, counted from one, as `answer` says, and a client of it. */
async function httpTo(
  answer: (response: ServerResponse, count: number) => void,
  options: Partial<HttpOptions> = {},
) {
  let count = 0;
  const server = createServer((_, response) => answer(response, ++count));
  const { url: baseUrl } = await listen(server);
  close = () => {
    server.close();
    server.closeAllConnections();
  };
  const http = createHttp({ baseUrl, fetch, patienceMs: 1000, ...options });
  return { http, apiKey: "", requests: () => count };
}

const fail = (response: ServerResponse, status: number): void => {
  const error = { code: "service_unavailable", message: "Try again later." };
  response.writeHead(status, { "retry-after": "0", "x-request-id": "one" }).end(JSON.stringify({ error }));
};
const succeed = (response: ServerResponse): void => void response.end(JSON.stringify({ data: { ok: true } }));

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

  it("that could be executed twice is sent once", async () => {
    const session = await httpTo((response) => fail(response, 503));
    const input = { path: { address: "0x" }, body: { challengeId: "", signature: "0x" } };
    const revocation = call(session, "POST /v1/agents/{address}/api-key/revoke", input);
    await expect(revocation).rejects.toMatchObject({ status: 503 });
    expect(session.requests()).toBe(1);
  });

  it("that hangs ends when patience is over", async () => {
    const session = await httpTo((response, count) => {
      if (count === 1) fail(response, 503);
    });
    const error = await call(session, "GET /v1/network").catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("timeout");
    expect(session.requests()).toBe(2);
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
