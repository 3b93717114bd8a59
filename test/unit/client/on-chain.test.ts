import { exitCodeOf } from "@working-contracts/cli/errors";
import { onChain, provenTerms } from "@working-contracts/client/index";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { encodeWords } from "@working-contracts/protocol/hex";
import { packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import { MAX_DATED_AHEAD } from "@working-contracts/protocol/signatures";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { encodeFunctionResult, type Hex, parseTransaction, toHex } from "viem";
import { afterEach, expect, it, vi } from "vitest";
import { type AskedCall, type FakeNode, json, startFakeNode } from "../chain/node.js";
import { account, CODE, NETWORK, resultOf } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

const ID = `0x${"11".repeat(20)}`;
const GWEI = 10n ** 9n;
const BLOCK = { number: "0x1", timestamp: "0x1", baseFeePerGas: toHex(GWEI), transactions: [] };

let node: FakeNode | undefined;
afterEach(() => node?.stop());

/** A node with a contract everywhere, which accepts each call; its answers can be others, those of calls by function. */
async function nodeWith(
  answers: Record<string, unknown>,
  results?: Parameters<typeof resultOf>[1],
  outages: string[] = [],
) {
  const called: string[] = [];
  const sent: string[] = [];
  const all: Record<string, unknown> = {
    eth_chainId: toHex(NETWORK.chainId),
    eth_blockNumber: "0x1",
    eth_getCode: CODE,
    eth_call: "0x",
    eth_getBlockByNumber: BLOCK,
    eth_maxPriorityFeePerGas: toHex(GWEI),
    eth_estimateGas: toHex(100_000),
    eth_getTransactionCount: "0x0",
    eth_sendRawTransaction: `0x${"00".repeat(32)}`,
    ...answers,
  };
  node = await startFakeNode((response, calls) => {
    const [{ id, method, params: [call] = [] } = { id: 0, method: "" }] = calls as (AskedCall & {
      params?: { data: Hex }[];
    })[];
    const outage = outages.indexOf(method);
    if (outage >= 0) {
      outages.splice(outage, 1);
      return void response.writeHead(503).end();
    }
    called.push(method);
    sent.push(JSON.stringify(call));
    if (method === "eth_call" && call !== undefined && results !== undefined)
      return json(response, { id, result: resultOf(call, results) });
    if (all[method] === undefined) json(response, { id, error: { code: -32601, message: "not found" } });
    else if (method === "eth_sendRawTransaction")
      json(response, { id, error: { code: -32000, message: "enough" } });
    else {
      const answer = all[method];
      json(response, { id, result: typeof answer === "function" ? answer(call) : answer });
    }
  });
  return { url: node.url, sent, wasSent: () => called.includes("eth_sendRawTransaction") };
}

it.each([
  ["on another chain", "chain", { eth_chainId: "0x1" }],
  ["that names a tip beyond the limit", "gas", { eth_maxPriorityFeePerGas: toHex(1000n * GWEI) }],
  ["that names gas beyond the limit", "gas", { eth_estimateGas: toHex(30_000_000) }],
  [
    "that names a gas price beyond the limit",
    "gas",
    { eth_getBlockByNumber: { ...BLOCK, baseFeePerGas: undefined }, eth_gasPrice: toHex(1000n * GWEI) },
  ],
])("a node %s gets no transaction", async (_, field, answers) => {
  const { url, wasSent } = await nodeWith(answers);
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  await expect(own.approve(ID)).rejects.toMatchObject({ name: "RefusedToSign", field });
  expect(wasSent()).toBe(false);
});

it("a node whose tokens have other decimals gets no payment", async () => {
  const { url } = await nodeWith({}, { "decimals()": () => encodeWords(6) });
  const shown: unknown[] = [];
  const beforePayment = (payment: unknown) => void shown.push(payment);
  const own = await onChain({ rpcUrl: url, account, network: NETWORK, beforePayment });
  const { id, terms } = servedTerms();
  const refusal = { name: "RefusedToSign", field: "protocolToken" };
  await expect(own.create(provenTerms(id, terms, NETWORK))).rejects.toMatchObject(refusal);
  expect(shown).toEqual([]);
});

it("an action that needs the addresses of the protocol names the missing setting", async () => {
  const { url } = await nodeWith({});
  const refused = await (await onChain({ rpcUrl: url, account })).unstake().catch((error) => error);
  expect(refused.message).toBe("This needs `network`, the addresses of the protocol (--deployment)");
  expect(exitCodeOf(refused)).toBe(2);
});

it("a refusal of fees names both amounts and what to do", async () => {
  const { url } = await nodeWith({ eth_estimateGas: toHex(30_000_000) });
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  await expect(own.approve(ID)).rejects.toThrow(
    /could cost 0\.0\d+ ether, more than the 0\.01 allowed\. Wait for lower fees, or raise maxGasCost \(--max-gas\)$/,
  );
});

it("a node that is out for a moment, or whose price is older than its base fee, gets the transaction", async () => {
  const answers = { eth_maxPriorityFeePerGas: undefined, eth_gasPrice: toHex(GWEI / 2n) };
  const outages = ["eth_getTransactionCount", "eth_estimateGas", "eth_gasPrice"];
  const { url, wasSent } = await nodeWith(answers, undefined, outages);
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  await expect(own.approve(ID)).rejects.toThrow();
  expect(wasSent()).toBe(true);
});

it("a node gets the transaction if the caller allows its fees", async () => {
  const { url, wasSent } = await nodeWith({ eth_maxPriorityFeePerGas: toHex(1000n * GWEI) });
  const own = await onChain({ rpcUrl: url, account, network: NETWORK, maxGasCost: 10n ** 18n });
  await expect(own.approve(ID)).rejects.toThrow();
  expect(wasSent()).toBe(true);
});

it("a transaction may use more gas than the node estimated", async () => {
  const { url, sent } = await nodeWith({});
  await expect((await onChain({ rpcUrl: url, account, network: NETWORK })).approve(ID)).rejects.toThrow();
  const raw = sent.filter(Boolean).map((call) => JSON.parse(call));
  expect(parseTransaction(raw.find((call) => String(call).startsWith("0x02")))).toMatchObject({
    gas: 200_000n,
  });
});

it("a transaction that a node has in spite of its error is waited for", async () => {
  const { url } = await nodeWith({
    eth_getTransactionByHash: (hash: string) => ({ hash }),
    eth_getTransactionReceipt: (transactionHash: string) => {
      return { transactionHash, status: "0x1", blockNumber: "0x1", logs: [] };
    },
  });
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  expect(await own.approve(ID)).toMatch(/^0x[0-9a-f]{64}$/);
});

it("a node gets no text that is dated further ahead than a contract allows", async () => {
  const now = Math.floor(Date.now() / 1000);
  const results = {
    "dependencies()": () => encodeWords(0, 0, NETWORK.relay as Hex),
    "grants(address,address)": () => encodeWords(now + MAX_DATED_AHEAD + 60, 0, 0, 0),
  };
  const { url } = await nodeWith({ eth_getBlockByNumber: { ...BLOCK, timestamp: toHex(now) } }, results);
  const signMessage = vi.fn(account.signMessage);
  const own = await onChain({ rpcUrl: url, account: { ...account, signMessage }, network: NETWORK });
  const refusal = { name: "RefusedToSign", field: "issuedAt" };
  await expect(own.register("all")).rejects.toMatchObject(refusal);
  expect(signMessage).not.toHaveBeenCalled();
});

it.each([
  ["before voting has ended, the node learns nothing", 60, false],
  ["once voting has ended, the vote is opened", DEFAULT_PARAMETERS.baVotingWindow + 60, true],
])("%s", async (_, age, isOpened) => {
  const salt: Hex = `0x${"5a".repeat(32)}`;
  const voter = account.address.toLowerCase() as Hex;
  const votes = packOutcomes(["met"]);
  const ballot = { chainId: NETWORK.chainId, escrow: ID as Hex, voter };
  const commitment = voteCommitment({ ...ballot, votes, salt });
  const now = Math.floor(Date.now() / 1000);
  const { code } = servedTerms();
  const jury = { disputedAt: now - age, drawBlock: 0, sealedVotes: 1, drawn: false, held: 0n };
  const results = {
    "jury()": () => encodeFunctionResult({ abi: escrowAbi, functionName: "jury", result: jury }),
    "ballotOf(address)": () => commitment,
  };
  const block = { ...BLOCK, timestamp: toHex(now) };
  const { url, sent, wasSent } = await nodeWith({ eth_getBlockByNumber: block, eth_getCode: code }, results);
  const own = await onChain({ rpcUrl: url, account, network: NETWORK });
  await expect(own.openVote(ID, salt)).rejects.toThrow(isOpened ? "parameters" : "has not ended");
  expect(sent.some((call) => call?.includes(salt.slice(2)))).toBe(isOpened);
  expect(wasSent()).toBe(isOpened);
});
