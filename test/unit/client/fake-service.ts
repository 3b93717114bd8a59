/** An agent of a service that answers as a test says, and knows nothing but its network and the chain's time. */

import { DEPLOYED_CODE } from "@working-contracts/client/deployed-code";
import {
  type Agent,
  type ConnectOptions,
  connect,
  type PinnedNetwork,
} from "@working-contracts/client/index";
import { encodeWords, selectorOf } from "@working-contracts/protocol/hex";
import { type Hex, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";

/** The code that nodes of these tests have at every address; the real code is on the chain of test/e2e/sdk.test.ts. */
export const CODE = "0x60";
for (const known of Object.values(DEPLOYED_CODE))
  for (const field of Object.keys(known)) Reflect.set(known, field, field === "hash" ? keccak256(CODE) : []);

const address = (byte: string): Hex => `0x${byte.repeat(20)}`;

export const NETWORK: PinnedNetwork = {
  baseUrl: "https://contracts.example",
  network: "eip155:84532",
  chainId: 84_532,
  domain: "contracts.example",
  factory: address("a1"),
  implementation: address("a2"),
  relay: address("a3"),
  delegation: address("a4"),
  registry: address("a5"),
  protocolToken: address("a6"),
  asset: { address: address("a7"), decimals: 6, symbol: "USDC", name: "USDC", version: "2" },
  startBlock: 0,
} as never;

export const account = privateKeyToAccount(`0x${"17".repeat(32)}`);

/** `answer` gets `GET /v1/...` and the request; without a response, the service does not find it. */
export function agentOf(
  answer: (request: string, init: RequestInit) => Response | undefined | Promise<Response | undefined>,
  { now = () => Date.now(), ...options }: Partial<ConnectOptions> & { now?: () => number } = {},
): Promise<Agent> {
  const serve = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const { pathname, search } = new URL(String(input));
    const response = await answer(`${init.method} ${pathname}${search}`, init);
    if (response !== undefined) return response;
    if (pathname === "/v1/network")
      return Response.json({ data: { ...NETWORK, time: new Date(now()).toISOString() } });
    return Response.json({ error: { code: "not_found", message: "Not found" } }, { status: 404 });
  };
  return connect({
    baseUrl: NETWORK.baseUrl,
    account,
    network: NETWORK,
    apiKey: "key",
    patienceMs: 0,
    fetch: serve as typeof fetch,
    ...options,
  });
}

/** Results of calls by the signatures of their functions; of others, it is the factory's implementation. */
type Results = Record<string, (to: string) => Hex>;

export function resultOf({ to = "", data }: { to?: string; data: string }, results: Results): Hex {
  const found = Object.entries(results).find(([signature]) => data.startsWith(selectorOf(signature)));
  return found === undefined ? encodeWords(NETWORK.implementation as Hex) : found[1](to);
}

export type NodeCall = { method: string; params: [{ to: string; data: string }] };

/** A node with the network's contracts. */
export const fakeNode = (results: Results, codeAt: (address: string) => Hex = () => CODE) => ({
  async request({ method, params: [call] }: NodeCall): Promise<unknown> {
    if (method === "eth_chainId") return toHex(NETWORK.chainId);
    if (method === "eth_blockNumber") return "0x1";
    if (method === "eth_getBlockByNumber") return { timestamp: "0x1" };
    return method === "eth_getCode" ? codeAt(String(call)) : resultOf(call, results);
  },
});

/** A quote for a call, in the network's stablecoin if it does not say otherwise. `more` is beside its option. */
export function quoted(path: string, quote: object, more: object = {}): Response {
  const { address: asset, name, version } = NETWORK.asset;
  const offer = { scheme: "exact", network: NETWORK.network, asset, extra: { name, version }, ...quote };
  const required = { x402Version: 2, resource: { url: NETWORK.baseUrl + path }, accepts: [offer], ...more };
  return Response.json({}, { status: 402, headers: { "payment-required": btoa(JSON.stringify(required)) } });
}
