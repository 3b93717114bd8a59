import { createPublicClient, HttpRequestError, TimeoutError } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import { type RpcTransportOptions, rpcTransport } from "../../../src/chain/transport.js";
import { type Answer, type FakeNode, json, startFakeNode } from "./node.js";

let node: FakeNode | undefined;
afterEach(() => node?.stop());

async function clientOf(answer: Answer, options: RpcTransportOptions = {}) {
  node = await startFakeNode(answer);
  return createPublicClient({ transport: rpcTransport(node.url, options) });
}

/** The innermost error of viem's that says how the request failed. */
async function failureOf(call: Promise<unknown>): Promise<HttpRequestError | TimeoutError | null> {
  const error = await call.then(
    () => null,
    (thrown) => thrown,
  );
  return error?.walk((cause: unknown) => cause instanceof HttpRequestError || cause instanceof TimeoutError);
}

describe("a node's answer", () => {
  it("is waited for no longer than the time-out, though its head has come", async () => {
    const client = await clientOf(
      (response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.write('{"jsonrpc":');
      },
      { timeout: 200, retryCount: 0 },
    );
    expect(await failureOf(client.getChainId())).toBeInstanceOf(TimeoutError);
  });

  it("is asked for again soon, whatever Retry-After says", async () => {
    const client = await clientOf((response, [call]) => {
      if (node?.requests() === 1) response.writeHead(503, { "retry-after": "3600" }).end("maintenance");
      else json(response, { jsonrpc: "2.0", id: call?.id, result: "0x7" });
    });
    expect(await client.getChainId()).toBe(7);
  });

  it("may be longer than ten megabytes, but not endless", async () => {
    const long = "0".repeat(11 * 1024 * 1024);
    const answer: Answer = (response, [call]) =>
      json(response, { jsonrpc: "2.0", id: call?.id, result: `0x${long}` });
    const client = await clientOf(answer);
    const address = `0x${"00".repeat(20)}` as const;
    expect(await client.getCode({ address })).toHaveLength(long.length + 2);
    await node?.stop();

    const limited = await clientOf(answer, { maxAnswerBytes: 1024, retryCount: 0 });
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

  it("gives each call its own answer, in whatever order they come", async () => {
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
    ["lacks an answer", (response, calls) => json(response, [{ id: calls[1]?.id, result: "0x2" }])],
    [
      "has an answer to nothing",
      (response, calls) =>
        json(
          response,
          calls.map(({ id }, index) => ({ id: index === 0 ? null : id, result: "0x2" })),
        ),
    ],
    [
      "has two answers to one call",
      (response, calls) =>
        json(
          response,
          [calls[0], ...calls].map((call) => ({ id: call?.id, result: "0x2" })),
        ),
    ],
    ["is answered once for all", (response) => json(response, { id: null, error: { code: -32_005 } })],
    ["is no JSON", (response) => response.end("<html>")],
  ])("that %s answers no call", async (_name, answer) => {
    const results = await twoCalls(answer);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    for (const result of results)
      expect(await failureOf(Promise.reject((result as PromiseRejectedResult).reason))).toBeInstanceOf(
        HttpRequestError,
      );
  });

  it("that is refused as a whole is refused by its status", async () => {
    const refusal = { jsonrpc: "2.0", id: null, error: { code: -32_005, message: "too many requests" } };
    const results = await twoCalls((response) => json(response, refusal, 429));
    for (const result of results) {
      const failure = await failureOf(Promise.reject((result as PromiseRejectedResult).reason));
      expect(failure).toMatchObject({ status: 429, details: expect.stringContaining("too many requests") });
    }
  });
});
