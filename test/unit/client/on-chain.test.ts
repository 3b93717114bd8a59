import { onChain } from "@working-contracts/client/index";
import { toHex } from "viem";
import { afterEach, expect, it } from "vitest";
import { type FakeNode, json, startFakeNode } from "../chain/node.js";
import { account, NETWORK } from "./fake-service.js";

const ID = `0x${"11".repeat(20)}`;
const GWEI = 10n ** 9n;

let node: FakeNode | undefined;
afterEach(() => node?.stop());

/** A node with a contract everywhere, which accepts each call; its answers can be others. */
async function nodeWith(answers: Record<string, unknown>) {
  const called: string[] = [];
  const all: Record<string, unknown> = {
    eth_chainId: toHex(NETWORK.chainId),
    eth_getCode: "0x60",
    eth_call: "0x",
    eth_getBlockByNumber: { number: "0x1", timestamp: "0x1", baseFeePerGas: toHex(GWEI), transactions: [] },
    eth_maxPriorityFeePerGas: toHex(GWEI),
    eth_estimateGas: toHex(100_000),
    eth_getTransactionCount: "0x0",
    eth_sendRawTransaction: `0x${"00".repeat(32)}`,
    ...answers,
  };
  node = await startFakeNode((response, calls) => {
    const [{ id, method } = { id: 0, method: "" }] = calls;
    called.push(method);
    if (all[method] === undefined) json(response, { id, error: { code: -32601, message: "not found" } });
    else if (method === "eth_sendRawTransaction")
      json(response, { id, error: { code: -32000, message: "enough" } });
    else json(response, { id, result: all[method] });
  });
  return { url: node.url, wasSent: () => called.includes("eth_sendRawTransaction") };
}

it.each([
  ["on another chain", "chain", { eth_chainId: "0x1" }],
  ["that names a tip beyond the limit", "gas", { eth_maxPriorityFeePerGas: toHex(1000n * GWEI) }],
  ["that names gas beyond the limit", "gas", { eth_estimateGas: toHex(30_000_000) }],
])("a node %s gets no transaction", async (_, field, answers) => {
  const { url, wasSent } = await nodeWith(answers);
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  await expect(own.approve(ID)).rejects.toMatchObject({ name: "RefusedToSign", field });
  expect(wasSent()).toBe(false);
});

it("a node gets the transaction if the caller allows its fees", async () => {
  const { url, wasSent } = await nodeWith({ eth_maxPriorityFeePerGas: toHex(1000n * GWEI) });
  const own = await onChain({ rpcUrl: url, account, network: NETWORK, maxGasCost: 10n ** 18n });
  await expect(own.approve(ID)).rejects.toThrow();
  expect(wasSent()).toBe(true);
});
