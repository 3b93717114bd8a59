import {
  escrowAt,
  requireNotWider,
  requireOnChain,
  requireTokens,
  termsIn,
} from "@working-contracts/client/chain-check";
import { ConnectionError } from "@working-contracts/client/errors";
import { concatHex, encodeWords } from "@working-contracts/protocol/hex";
import { challengeText } from "@working-contracts/protocol/signatures";
import type { EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { keccak256, toHex } from "viem";
import { expect, it } from "vitest";
import { account, agentOf, CODE, fakeNode, NETWORK, type NodeCall } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

/** A node with the network's contracts, whose tokens have these decimals. */
const nodeWith = (decimals: Record<string, number>) =>
  fakeNode({
    "decimals()": (to) => {
      const found = decimals[to];
      if (found === undefined) throw new Error("execution reverted");
      return encodeWords(found);
    },
  });

it.each([
  ["asset", { asset: { ...NETWORK.asset, address: "0x1\u001b[2J" } }],
  ["relay", { relay: "0x1\u001b[2J" }],
])("a network is refused if its %s is not an address", async (field, change) => {
  const agent = agentOf(() => undefined, { network: { ...NETWORK, ...change } });
  await expect(agent).rejects.toMatchObject({ name: "RefusedToSign", field });
});

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
    async request(call: NodeCall) {
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

it("no API key is issued while the node is down", async () => {
  const requests: string[] = [];
  const answer = (request: string) => void requests.push(request);
  const down = { request: () => Promise.reject(new ConnectionError("down")) };
  const connecting = agentOf(answer, { node: down as never, apiKey: undefined as never });
  await expect(connecting).rejects.toThrow("down");
  expect(requests).toEqual([]);
});

it("no API key is issued, and no event searched, from a start block that the node does not have", async () => {
  const requests: string[] = [];
  const network = { ...NETWORK, startBlock: 2 ** 40 };
  const answer = (request: string) => void requests.push(request);
  const node = fakeNode({ "dependencies()": () => encodeWords(0, 0, NETWORK.relay as Hex) });
  const refusal = { name: "RefusedToSign", field: "startBlock" };
  const connecting = agentOf(answer, { node: node as never, network, apiKey: undefined as never });
  await expect(connecting).rejects.toMatchObject(refusal);
  expect(requests).toEqual([]);
  await expect(escrowAt(node, network, servedTerms().id)).rejects.toMatchObject(refusal);
});

it("a narrower sign-in waits for its registration while the node does not respond", async () => {
  /** The actions that are delegated; null while the node does not respond. */
  let grants: (number | null)[] = [];
  const node = fakeNode({
    "dependencies()": () => encodeWords(0, 0, NETWORK.relay as Hex),
    "grants(address,address)": () => {
      const actions = grants.length > 1 ? grants.shift() : grants[0];
      if (actions == null) throw new ConnectionError("gone");
      return encodeWords(2, 1, 0, actions);
    },
  });
  const signedWith = (signal?: AbortSignal) => {
    return { network: NETWORK, signer: account, permission: { actions: 1, until: 0 }, http: { signal } };
  };
  grants = [7, null, 1];
  await requireNotWider(signedWith() as never, node);
  grants = [7];
  const aborted = requireNotWider(signedWith(AbortSignal.timeout(100)) as never, node);
  await expect(aborted).rejects.toMatchObject({ name: "TimeoutError" });
});

it("all keys are revoked only once no delegation is in force at the node, whatever the service answers", async () => {
  let grants = [7, 7, 0];
  const node = fakeNode({
    "dependencies()": () => encodeWords(0, 0, NETWORK.relay as Hex),
    "grants(address,address)": () =>
      encodeWords(2, 1, 0, (grants.length > 1 ? grants.shift() : grants[0]) ?? 0),
  });
  const stopped = new AbortController();
  const agent = await agentOf(
    (request) => {
      if (request.endsWith("/api-key/revoke")) return Response.json({ data: { revokedCount: 2 } });
      if (!request.endsWith("/challenge")) return undefined;
      const issuedAt = Math.floor(Date.now() / 1000);
      const dated = { nonce: keccak256("0x01"), issuedAt, expiresAt: issuedAt + 300 };
      const {
        domain,
        relay: operator,
        factory,
        chainId,
      } = NETWORK as typeof NETWORK & Record<"relay" | "factory", Hex>;
      const named = { domain, agent: account.address, operator, factory, chainId };
      const message = challengeText({ ...named, actions: 0, until: 0, ...dated });
      return Response.json({ data: { challengeId: "1", message } });
    },
    { node, signal: stopped.signal },
  );
  expect(await agent.revokeKeys()).toBe(2);
  expect(grants).toEqual([0]);
  grants = [7];
  expect(await agent.revokeKeys("1")).toBe(2);
  const pretended = agent.revokeKeys();
  setTimeout(() => stopped.abort(new Error("given up")), 1_500);
  await expect(pretended).rejects.toMatchObject({
    name: "NotOnChain",
    message: "2 keys are revoked. given up",
  });
});

it("a node that hides the dispute is a failure, not a dispute without Backup Agents", async () => {
  const { id, code } = servedTerms();
  const chain = fakeNode({}, (address) => (address === id ? code : CODE));
  const node = {
    async request(call: NodeCall) {
      if (call.method === "eth_getLogs") return [];
      return call.method === "eth_blockNumber" ? "0x7530" : chain.request(call);
    },
  };
  const { backupAgents } = await escrowAt(node, NETWORK, id);
  await expect(backupAgents()).rejects.toThrow("no event of the dispute");
});

it("events are found at a node that allows few blocks for each request, in as few requests as that takes", async () => {
  const { id, code } = servedTerms();
  const newest = 30_000;
  const topicOf = (event: string) => keccak256(toHex(event));
  const [matched, delivered, disputed, drawn] = [
    "WorkingContractMatched(address,uint256)",
    "WorkingContractDelivered(bytes32,bytes32,uint24)",
    "WorkingContractDisputed(uint256,uint40)",
    "BackupAgentsDrawn(address[])",
  ].map(topicOf);
  const juror = `0x${"ab".repeat(20)}` as Hex;
  const hash = keccak256("0x01");
  const logs = [
    { at: newest - 20_600, topics: [matched], data: "0x", blockNumber: "0x1" },
    { at: newest - 20_500, topics: [delivered], data: concatHex([hash, hash, encodeWords(0)]) },
    { at: newest - 20_000, topics: [disputed], data: "0x" },
    { at: newest - 19_999, topics: [drawn], data: encodeWords(32, 1, juror) },
  ];
  let asked = 0;
  const zero = () => encodeWords(0);
  const results = {
    ...{ "ballotOf(address)": zero, "isDrawn(address)": zero, "jury()": () => encodeWords(1, 0, 0) },
    "isEligible(address,uint256,uint40)": () => encodeWords(1),
  };
  const chain = fakeNode(results, (address) => (address === id ? code : CODE));
  const nodeOf = (most: number) => ({
    async request(call: NodeCall) {
      if (call.method === "eth_blockNumber") return toHex(newest);
      if (call.method !== "eth_getLogs") return chain.request(call);
      const { topics, fromBlock, toBlock } = call.params[0] as never as Record<string, string>;
      asked++;
      if (Number(toBlock) - Number(fromBlock) >= most) throw new Error(`up to a ${most} block range`);
      const within = ({ at, topics: [topic] }: (typeof logs)[number]) =>
        topics?.[0]?.includes(topic as Hex) && at >= Number(fromBlock) && at <= Number(toBlock);
      return logs.filter(within);
    },
  });
  const { backupAgents, deliveryHash } = await escrowAt(nodeOf(500), NETWORK, id);
  expect(await deliveryHash()).toBe(hash);
  expect(await backupAgents()).toEqual(new Set([juror]));
  // Five are refused, then 312 blocks at once.
  expect(asked).toBe(2 * 5 + Math.ceil(20_501 / 312) + Math.ceil(20_001 / 312));
  const { mayVote } = await escrowAt(nodeOf(500), NETWORK, id);
  asked = 0;
  for (const agent of [juror, account.address]) expect(await mayVote(agent)).toBe(true);
  expect(asked).toBe(5 + Math.ceil(20_601 / 312));
  const none = await escrowAt(nodeOf(0), NETWORK, id);
  await expect(none.deliveryHash()).rejects.toThrow("up to a 0 block range");
});

it.each<[Hex, object | undefined]>([
  ["0x", { field: "parameters" }],
  [encodeWords(1), { field: "parameters" }],
  [encodeWords(2), undefined],
])("parameters that the node shows as valid until %s", async (validUntil, refusal) => {
  const { id, code } = servedTerms();
  const node = fakeNode({
    "parametersValidUntil(bytes29)": () => validUntil,
    "status()": () => encodeWords(0),
  });
  const terms = termsIn(code) as EscrowTerms;
  const checked = requireOnChain(node, NETWORK, { id, terms, isNew: true });
  if (refusal) await expect(checked).rejects.toMatchObject(refusal);
  else await checked;
});
