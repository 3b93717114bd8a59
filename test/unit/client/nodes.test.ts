/** A node's URL can contain a key, so no error shows more of it than the host. */
import { refusalOf } from "@working-contracts/cli/errors";
import { onChain } from "@working-contracts/client/index";
import { requesterOf } from "@working-contracts/client/rpc";
import { type Reader, verifyContract } from "@working-contracts/client/verify/verify";
import { createClient, http } from "viem";
import { getChainId } from "viem/actions";
import { afterEach, expect, it, vi } from "vitest";
import { type FakeNode, json, startFakeNode } from "../chain/node.js";
import { account } from "./fake-service.js";

const KEY = "0123456789abcdef";
const ID = `0x${"11".repeat(20)}`;

let node: FakeNode | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  return node?.stop();
});

const thrown = (call: Promise<unknown>): Promise<Error> =>
  call.then(
    () => new Error("none"),
    (error) => error,
  );
/** Nothing listens there. */
async function deadUrl(): Promise<string> {
  const { url, stop } = await startFakeNode(() => {});
  await stop();
  return `${url}/v2/${KEY}`;
}

it("names a node that does not respond, by its host alone", async () => {
  const url = await deadUrl();
  const error = await thrown(requesterOf(url)("eth_chainId", []));
  expect(error.name).toBe("ConnectionError");
  expect(error.message).toContain(`eth_chainId at the node ${new URL(url).host}: connect ECONNREFUSED`);
  expect(error.message).not.toContain(KEY);
  const withPassword = url.replace("//", `//:${KEY}@`);
  expect((await thrown(requesterOf(withPassword)("eth_chainId", []))).message).toContain("ECONNREFUSED");
  expect((await thrown(requesterOf(`node/${KEY}`)("eth_chainId", []))).message).not.toContain(KEY);
});

it("gives up on a node that accepts a request and does not respond", async () => {
  node = await startFakeNode(() => {});
  const timeout = AbortSignal.timeout;
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms / 1000));
  const error = await thrown(requesterOf(node.url)("eth_chainId", []));
  expect(error.name).toBe("ConnectionError");
});

it.each<[string, (url: string) => Promise<unknown>]>([
  ["requests", (url) => requesterOf(url)("eth_chainId", [])],
  ["transactions", async (url) => (await onChain({ rpcUrl: url, account })).approve(ID)],
  ["verify", (url) => verifyContract({ network: { chainId: 1 } } as Reader, ID, { nodes: [url] })],
])("gives up on a node that sends half a response, or asks for a long pause: %s", async (_, use) => {
  node = await startFakeNode((response) =>
    node?.requests() === 2
      ? void response.writeHead(429, { "retry-after": "86400" }).end()
      : void response.writeHead(200, { "content-type": "application/json" }).write("{"),
  );
  const { timeout } = AbortSignal;
  const { setTimeout } = globalThis;
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms / 200));
  const viemTimeout = 10_000;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((perform: () => void, ms = 0, ...args: []) =>
    setTimeout(perform, ms === viemTimeout ? 50 : ms, ...args)) as typeof setTimeout);
  const error = await thrown(use(node.url));
  expect(error.message).toMatch(/timeout|too long/);
});

it("names a node that responds with something else, and passes a node's own error on", async () => {
  node = await startFakeNode((response, [call]) => {
    if (call?.method === "eth_chainId") response.writeHead(401).end("<html>");
    else json(response, { error: { message: "no such block" } });
  });
  const rpc = requesterOf(`${node.url}/${KEY}`);
  const refused = await thrown(rpc("eth_chainId", []));
  expect(refused.message).toBe(`eth_chainId at the node ${new URL(node.url).host}: HTTP 401`);
  expect((await thrown(rpc("eth_call", []))).message).toBe("eth_call: no such block");
});

it("takes too many requests for an outage, not for a range that is too wide", async () => {
  node = await startFakeNode((response) =>
    response.writeHead(429).end(JSON.stringify({ error: { code: 429, message: "too many requests" } })),
  );
  const error = await thrown(requesterOf(node.url)("eth_getLogs", []));
  expect([error.name, error.message]).toEqual(["ConnectionError", expect.stringMatching(/HTTP 429$/)]);
});

it("hides a key that a node repeats, and names its reason to refuse a transaction", async () => {
  const code = -32000;
  node = await startFakeNode((response, [call]) =>
    json(response, { id: call?.id, error: { code, message: `nonce too low: /v2/${KEY}?key=${KEY}` } }),
  );
  const rpcUrl = `${node.url}/v2/${KEY}`;
  const refused = await thrown(requesterOf(rpcUrl)("eth_chainId", []));
  expect(refused.message).toBe("eth_chainId: nonce too low: /v2/…?key=…");
  const failed = await thrown((await onChain({ rpcUrl, account })).approve(ID));
  expect(failed.message).toMatch(/^The node \S+: .+ \(nonce too low: \/v2\/…\?key=…\)$/s);
});

it("leaves the URL out of verify's errors, and of those of the command line", async () => {
  const url = await deadUrl();
  const reader = { network: { chainId: 1 } } as Reader;
  const error = await thrown(verifyContract(reader, ID, { nodes: [url] }));
  expect(error.message).toBe(`The node ${new URL(url).host}: HTTP request failed.`);

  const direct = await thrown(getChainId(createClient({ transport: http(url, { retryCount: 0 }) })));
  expect(direct.message).toContain(KEY);
  expect(JSON.stringify(refusalOf(direct))).not.toContain(KEY);
});
