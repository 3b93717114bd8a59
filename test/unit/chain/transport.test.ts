import { createPublicClient, HttpRequestError, TimeoutError } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import { type RpcTransportOptions, rpcTransport } from "../../../src/chain/clients.js";
import { type Answer, type FakeNode, json, startFakeNode } from "./node.js";

let node: FakeNode | undefined;
afterEach(() => node?.stop());

async function clientOf(answer: Answer, options: RpcTransportOptions = {}) {
  node = await startFakeNode(answer);
  return createPublicClient({ transport: rpcTransport(node.url, options) });
}

/** viem's innermost error about the failed request. */
async function failureOf(call: Promise<unknown>): Promise<HttpRequestError | TimeoutError | null> {
  const error = await call.then(
    () => null,
    (thrown) => thrown,
  );
  return error?.walk((cause: unknown) => cause instanceof HttpRequestError || cause instanceof TimeoutError);
}

describe("a node's response", () => {
  it("is awaited no longer than the time-out, even if its head has arrived", async () => {
    const client = await clientOf(
      (response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write('{"jsonrpc":');
      },
      { timeout: 200, retryCount: 0 },
    );
    expect(await failureOf(client.getChainId())).toBeInstanceOf(TimeoutError);
  });

  it("is requested again soon, whatever Retry-After says", async () => {
    const client = await clientOf((response, [call]) => {
      if (node?.requests() === 1) response.writeHead(503, { "retry-after": "3600" }).end("maintenance");
      else json(response, { jsonrpc: "2.0", id: call?.id, result: "0x7" });
    });
    expect(await client.getChainId()).toBe(7);
  });

  it("is that of the call if it is an error, whatever its status", async () => {
    const refusal = { jsonrpc: "2.0", id: 0, error: { code: 3, message: "execution reverted" } };
    const client = await clientOf((response) => json(response, refusal, 400), { retryCount: 0 });
    await expect(client.getChainId()).rejects.toThrow("execution reverted");
  });

  it("comes to a request with the credentials of the URL", async () => {
    node = await startFakeNode((response, [call]) => {
      const { authorization = "" } = response.req.headers;
      const result = Buffer.from(authorization.replace("Basic ", ""), "base64").toString();
      json(response, { jsonrpc: "2.0", id: call?.id, result });
    });
    const url = node.url.replace("http://", "http://me:p%40ss@");
    const client = createPublicClient({ transport: rpcTransport(url) });
    expect(await client.request({ method: "eth_chainId" })).toBe("me:p@ss");
  });

  it("can be longer than ten megabytes, but has a limit", async () => {
    const long = "0".repeat(11 * 1024 * 1024);
    const answer: Answer = (response, [call]) =>
      json(response, { jsonrpc: "2.0", id: call?.id, result: `0x${long}` });
    const client = await clientOf(answer);
    const address = `0x${"00".repeat(20)}` as const;
    expect(await client.getCode({ address })).toHaveLength(long.length + 2);
    await node?.stop();

    const limited = await clientOf(answer, { maxResponseBytes: 1024, retryCount: 0 });
    const failure = await failureOf(limited.getCode({ address }));
    expect(failure).toBeInstanceOf(HttpRequestError);
    expect(failure?.details).toContain("longer than 1024 bytes");
  });
});

describe("a batch", () => {
  const twoCalls = async (answer: Answer) => {
    const client = await clientOf(answer, { batch: true, retryCount: 0 });
    return Promise.allSettled([client.getGasPrice(), client.getBlockNumber({ cacheTime: 0 })]);
  };

  it("gives each call its own response, in whatever order they arrive", async () => {
    const results = await twoCalls((response, calls) => {
      const answers = calls.map(({ id, method }) => ({
        jsonrpc: "2.0",
        id,
        result: method === "eth_gasPrice" ? "0x1" : "0x2",
      }));
      json(response, answers.reverse());
    });
    expect(results).toEqual([
      { status: "fulfilled", value: 1n },
      { status: "fulfilled", value: 2n },
    ]);
  });

  it.each<[string, Answer]>([
    ["lacks a response", (response, calls) => json(response, [{ id: calls[1]?.id, result: "0x2" }])],
    [
      "has a response to no call",
      (response, calls) =>
        json(
          response,
          calls.map(({ id }, index) => ({ id: index === 0 ? null : id, result: "0x2" })),
        ),
    ],
    [
      "has two responses to one call",
      (response, calls) =>
        json(
          response,
          [calls[0], ...calls].map((call) => ({ id: call?.id, result: "0x2" })),
        ),
    ],
    ["gets one response for all", (response) => json(response, { id: null, error: { code: -32_005 } })],
    ["is not JSON", (response) => response.end("<html>")],
  ])("answers no call if it %s", async (_name, answer) => {
    const results = await twoCalls(answer);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    for (const result of results)
      expect(await failureOf(Promise.reject((result as PromiseRejectedResult).reason))).toBeInstanceOf(
        HttpRequestError,
      );
  });

  it("fails with its status if it is rejected as a whole", async () => {
    const refusal = { jsonrpc: "2.0", id: null, error: { code: -32_005, message: "too many requests" } };
    const results = await twoCalls((response) => json(response, refusal, 429));
    for (const result of results) {
      const failure = await failureOf(Promise.reject((result as PromiseRejectedResult).reason));
      expect(failure).toMatchObject({ status: 429, details: expect.stringContaining("too many requests") });
    }
  });
});
