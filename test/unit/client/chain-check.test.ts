import { requireOnChain, requireTokens } from "@working-contracts/client/chain-check";
import { selectorOf } from "@working-contracts/protocol/calls";
import { expect, it } from "vitest";
import { CODE, NETWORK } from "./fake-service.js";

interface Call {
  method: string;
  params: [{ to: string; data: string }];
}

/** A node with the network's contracts, whose tokens have these decimals. */
function nodeWith(decimals: Record<string, number>) {
  return {
    async request({ method, params: [call] }: Call) {
      if (method === "eth_chainId") return `0x${NETWORK.chainId.toString(16)}`;
      if (method === "eth_getCode") return CODE;
      if (call.data !== selectorOf("decimals()"))
        return `0x${"00".repeat(12)}${NETWORK.implementation.slice(2)}`;
      const found = decimals[call.to];
      if (found === undefined) throw new Error("execution reverted");
      return `0x${found.toString(16).padStart(64, "0")}`;
    },
  };
}

it("a payment needs tokens that have the decimals of their currencies at the caller's node", async () => {
  const { asset, protocolToken } = NETWORK;
  await requireTokens(nodeWith({ [asset.address]: 6, [protocolToken]: 18 }), NETWORK);
  for (const [decimals, field, reason] of [
    [{ [asset.address]: 2, [protocolToken]: 18 }, "asset", asset.address],
    [{ [protocolToken]: 18 }, "asset", "(execution reverted)"],
    [{ [asset.address]: 6, [protocolToken]: 6 }, "protocolToken", protocolToken],
  ] as const) {
    const refused = requireTokens(nodeWith(decimals), NETWORK);
    const message = expect.stringContaining(reason);
    await expect(refused).rejects.toMatchObject({ name: "RefusedToSign", field, message });
  }
});

it("reports the node's error if a check fails", async () => {
  const limited = {
    async request(call: Call) {
      if (call.method === "eth_call") throw new Error("limit exceeded");
      return nodeWith({}).request(call);
    },
  };
  const message = expect.stringMatching(/: the check of 0x\w+ failed \(limit exceeded\)/);
  for (const [check, field] of [
    [requireOnChain, "implementation"],
    [requireTokens, "asset"],
  ] as const)
    await expect(check(limited, NETWORK)).rejects.toMatchObject({ name: "RefusedToSign", field, message });
});

it("an action without a payment does not need them", async () => {
  await requireOnChain(nodeWith({}), NETWORK);
});
