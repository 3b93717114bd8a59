/** Checks on chain, with the caller's own node, that a payment goes to a real escrow of the deployment. */

import { TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { encodeCall, selectorOf } from "@working-contracts/protocol/calls";
import { concatHex } from "@working-contracts/protocol/hex";
import { STATUSES } from "@working-contracts/protocol/status";
import { packParameters, packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { ConnectionError, RefusedToSign } from "./errors.js";
import { parse, reasonOf } from "./http.js";
import type { PinnedNetwork } from "./types.js";
import type { Eip1193Provider } from "./wallets.js";

/** A node: its JSON-RPC URL, or an EIP-1193 provider. */
export type Node = string | Eip1193Provider;

const IMPLEMENTATION = selectorOf("IMPLEMENTATION()");

/**
 * Throws RefusedToSign if the node is on another chain, the factory does not deploy this implementation, or a contract
 * of the deployment has no code. With `escrow`, also unless that address holds exactly the proxy with these terms, or
 * for a new one, unless the factory accepts its parameters now.
 */
export async function requireOnChain(
  node: Node,
  network: PinnedNetwork,
  escrow?: { id: string; terms: EscrowTerms; isNew?: boolean },
): Promise<void> {
  const rpc = requesterOf(node);
  const codeAt = (address: string) => rpc<Hex>("eth_getCode", [address, "latest"]);
  const chainId = Number(await rpc<Hex>("eth_chainId", []));
  if (chainId !== network.chainId)
    throw new RefusedToSign("chain", `the node is on chain ${chainId}, the deployment on ${network.chainId}`);

  for (const name of ["factory", "implementation"] as const) {
    if ((await codeAt(network[name])) === "0x")
      throw new RefusedToSign(name, `there is no code at ${network[name]}`);
  }
  if ((await codeAt(network.asset.address)) === "0x")
    throw new RefusedToSign("asset", `there is no code at ${network.asset.address}`);
  const call = { to: network.factory, data: IMPLEMENTATION };
  const deployed = await rpc<Hex>("eth_call", [call, "latest"]).catch((error) => {
    if (error instanceof ConnectionError) throw error;
    return "0x";
  });
  if (`0x${deployed.slice(-40)}` !== network.implementation)
    throw new RefusedToSign("implementation", `the factory ${network.factory} deploys other code`);

  if (escrow === undefined) return;
  if (escrow.isNew) {
    const data = concatHex([
      selectorOf("parametersValidUntil(bytes29)"),
      packParameters(escrow.terms.parameters),
      "0x000000",
    ]);
    const validUntil = Number(await rpc<Hex>("eth_call", [{ to: network.factory, data }, "latest"]));
    const { timestamp } = await rpc<{ timestamp: Hex }>("eth_getBlockByNumber", ["latest", false]);
    if (validUntil <= Number(timestamp))
      throw new RefusedToSign("parameters", `the factory ${network.factory} does not accept them`);
    return;
  }
  const proxy = concatHex([
    "0x363d3d373d3d3d363d73",
    network.implementation as Address,
    "0x5af43d82803e903d91602b57fd5bf3",
    packTerms(escrow.terms),
  ]);
  if ((await codeAt(escrow.id)).toLowerCase() !== proxy.toLowerCase())
    throw new RefusedToSign("payTo", `there is no escrow with these terms at ${escrow.id}`);
}

/** Facts of an escrow, read at the caller's own node. Throws RefusedToSign unless it is one with these terms. */
export async function escrowAt(
  node: Node,
  network: PinnedNetwork,
  escrow: { id: string; terms: EscrowTerms },
) {
  await requireOnChain(node, network, escrow);
  const rpc = requesterOf(node);
  const read = (data: Hex, to = escrow.id) => rpc<Hex>("eth_call", [{ to, data }, "latest"]);
  const holds = async (data: Hex, to?: string): Promise<boolean> => BigInt(await read(data, to)) !== 0n;
  const { baEligibilityStake } = escrow.terms.parameters;
  const required = BigInt(baEligibilityStake) * 10n ** BigInt(TOKEN_DECIMALS);
  return {
    /** Lower case; zero if no one has accepted a listing. */
    client: async () => `0x${(await read(encodeCall("client()"))).slice(-40)}`,
    isDisputed: async () => STATUSES[Number(await read(encodeCall("status()"))) - 1] === "disputed",
    /** Whether an agent was drawn, has voted, or has the stake to vote. */
    mayVote: async (agent: Address): Promise<boolean> =>
      (await holds(encodeCall("ballotOf(address)", agent))) ||
      (await holds(encodeCall("isDrawn(address)", agent))) ||
      holds(encodeCall("isEligible(address,uint256,uint40)", agent, required, 2 ** 40 - 1), network.registry),
  };
}

/** The nonce that the agent's signed actions need at an escrow or the registry. */
export async function signatureNonceAt(node: Node, contract: string, agent: Address): Promise<bigint> {
  const data = encodeCall("signatureNonce(address)", agent);
  return BigInt(await requesterOf(node)<Hex>("eth_call", [{ to: contract, data }, "latest"]));
}

/**
 * JSON-RPC requests to a node. They throw if the node responds with an error, and ConnectionError if it does not respond.
 * No message has the node's whole URL, because it can contain a key.
 */
export function requesterOf(node: Node): <T>(method: string, params: unknown[]) => Promise<T> {
  if (typeof node !== "string") return (method, params) => node.request({ method, params });
  return async <T>(method: string, params: unknown[]) => {
    const failure = (reason: string) =>
      new ConnectionError(`${method} at the node ${hostOf(node)}: ${reason}`);
    let response: Response;
    let text: string;
    try {
      response = await fetch(node, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      text = await response.text();
    } catch (error) {
      throw failure(reasonOf(error));
    }
    const { result, error } = (parse(text) ?? {}) as { result?: T; error?: { message: string } };
    if (result !== undefined) return result;
    if (error === undefined) throw failure(`HTTP ${response.status}`);
    throw new Error(`${method}: ${error.message}`);
  };
}

/** All of a node's URL that may be shown. */
export function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return "without a valid URL";
  }
}
