/** Checks on chain, with the caller's own node, that a payment goes to a real escrow, and what the service says of one. */

import { STABLECOIN_DECIMALS, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import {
  concatHex,
  encodeCall,
  keccak256,
  padHex,
  selectorOf,
  size,
  sliceHex,
  stringToHex,
} from "@working-contracts/protocol/hex";
import { tokenUnits } from "@working-contracts/protocol/ledger";
import type { Permission } from "@working-contracts/protocol/signatures";
import {
  isVotingClosed,
  STATUSES,
  type Status,
  seatsOpenAt,
  votingClosesAt,
} from "@working-contracts/protocol/status";
import { escrowAddress, packParameters, unpackTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { DEPLOYED_CODE } from "./deployed-code.js";
import { ConnectionError, isOutage, NotOnChain, RefusedToSign } from "./errors.js";
import { type ChainNode, type Range, type Rpc, rangesBack, requesterOf } from "./rpc.js";
import type { Session } from "./session.js";
import type { Addresses, Contract } from "./types.js";
import type { Protocol } from "./verify/read-chain.js";
import { matches, type WaitOptions, waitUntil } from "./wait.js";

interface Log {
  topics: Hex[];
  data: Hex;
  blockNumber: Hex;
}

const callAt = (rpc: Rpc, to: string, data: Hex) => rpc<Hex>("eth_call", [{ to, data }, "latest"]);
const IMPLEMENTATION = selectorOf("IMPLEMENTATION()");
const DECIMALS = selectorOf("decimals()");
const DEPENDENCIES = selectorOf("dependencies()");
const topicOf = (event: string): Hex => keccak256(stringToHex(event));
const DISPUTED = topicOf("WorkingContractDisputed(uint256,uint40)");
const DRAWN = topicOf("BackupAgentsDrawn(address[])");
const SEALED = topicOf("VoteSealed(address,bytes32,uint256)");
/** Length of an EIP-1167 proxy; the escrow's terms follow it. */
const PROXY_BYTES = 45;
/** Base Sepolia's id, which the local network has as well. Elsewhere the token's grants are public for a week. */
const TEST_CHAIN = 84_532;
const MIN_GRANT_DELAY = 604_800n;
/** An escrow's last events are often new: a search begins with fewer blocks than most nodes allow. */
const LOG_BLOCKS = 10_000n;
/** Without and with a named counterparty. */
const TERMS_BYTES = [109, 129];
/** How long the service can take to register a narrower sign-in. */
const REGISTRATION_MS = 30_000;
/** How far node and service can be apart. */
const LAG_MS = 30_000;
/** After this time without an answer, a node's last one says nothing of now. */
const SILENCE_MS = 5_000;
const ENDED = ["cancelled-by-initiator", "cancelled-unmatched"];
const DECIDED = ["resolved", "settled-*"];
const DELIVERED = ["under-review", "disputed", ...DECIDED];
/** The statuses that an action leads to, at once or later. */
const LED_TO = {
  create: ["*"],
  accept: ["matched", "cancelled-withdrawn", "cancelled-absent", ...DELIVERED],
  deliver: DELIVERED,
  approve: DECIDED,
  dispute: ["disputed", ...DECIDED],
  cancel: ENDED,
  decline: ENDED,
  withdraw: ["cancelled-withdrawn"],
};

/** Throws RefusedToSign unless chain, start block, factory and an existing escrow, or a new one's parameters, are as expected. */
export async function requireOnChain(
  node: ChainNode,
  network: Addresses,
  escrow?: { id: string; terms: EscrowTerms; isNew?: boolean },
  status?: Status,
): Promise<void> {
  const rpc = requesterOf(node);
  await requireChain(rpc, network);
  // Events are searched from there on: beyond the head, the node would seem to have none.
  if (BigInt(await rpc<Hex>("eth_blockNumber", [])) < BigInt(network.startBlock))
    throw new RefusedToSign("startBlock", `the node has no block ${network.startBlock}`);
  await requireAnswer(rpc, [network.factory, IMPLEMENTATION], {
    isRight: (deployed) => `0x${deployed.slice(-40)}` === network.implementation,
    field: "implementation",
    difference: `the factory ${network.factory} deploys other code`,
  });
  if (escrow === undefined) return;
  if (!escrow.isNew) return (await factsOf(rpc, network, escrow.id)).requireStatus(status);
  await requireNew(node, escrow.id);
  const data = concatHex([
    selectorOf("parametersValidUntil(bytes29)"),
    packParameters(escrow.terms.parameters),
    "0x000000",
  ]);
  const validUntil = Number(await callAt(rpc, network.factory, data));
  // Not `<=`, which an unreadable answer would pass.
  if (!(validUntil > (await timeOf(rpc, "latest"))))
    throw new RefusedToSign("parameters", `the factory ${network.factory} does not accept them`);
}

/** Throws RefusedToSign unless the contracts that decide about money and votes have the code of this package's build. */
export async function requireKnownCode(node: ChainNode, network: Protocol): Promise<void> {
  const rpc = requesterOf(node);
  await requireChain(rpc, network);
  const names = Object.keys(DEPLOYED_CODE) as (keyof typeof DEPLOYED_CODE)[];
  const codes = await Promise.all(names.map((name) => rpc<Hex>("eth_getCode", [network[name], "latest"])));
  for (const [i, name] of names.entries()) requireCode(name, codes[i] ?? "0x", network);
}

/** Throws RefusedToSign if the node is on another chain. */
export async function requireChain(rpc: Rpc, network: Pick<Protocol, "chainId">): Promise<void> {
  const chainId = Number(await rpc<Hex>("eth_chainId", []));
  if (chainId !== network.chainId)
    throw new RefusedToSign("chain", `the node is on chain ${chainId}, the deployment on ${network.chainId}`);
}

function requireCode(name: keyof typeof DEPLOYED_CODE, code: Hex, network: Protocol): void {
  const at = network[name];
  if (code === "0x") throw new RefusedToSign(name, `the node has no code at ${at}`);
  const { hash, ...immutables } = DEPLOYED_CODE[name];
  const known = { ...network, asset: network.asset.address, grantDelay: "at least a week", eip712: "" };
  const words = Object.entries(immutables).flatMap(([field, places]: [string, readonly number[]]) =>
    places.map((place) => ({ field: field as keyof typeof known, start: 2 + 2 * place })),
  );
  let masked = code;
  for (const { start } of words)
    masked = `0x${masked.slice(2, start)}${"0".repeat(64)}${masked.slice(start + 64)}`;
  if (keccak256(masked) !== hash)
    throw new RefusedToSign(
      name,
      `the code at ${at} does not match this package's build; use the package of that deployment, or check its addresses`,
    );
  for (const { field, start } of words) {
    const found: Hex = `0x${code.slice(start, start + 64)}`;
    const isRight =
      field === "eip712" ||
      (field === "grantDelay"
        ? network.chainId === TEST_CHAIN || BigInt(found) >= MIN_GRANT_DELAY
        : found === padHex(known[field] as Hex, { size: 32 }));
    if (!isRight)
      throw new RefusedToSign(field, `the ${name} at ${at} uses 0x${found.slice(-40)}, not ${known[field]}`);
  }
}

/** Throws RefusedToSign unless both tokens have the decimals of their currencies: limits are decimals, too. */
export async function requireTokens(node: ChainNode, { asset, protocolToken }: Addresses): Promise<void> {
  for (const [field, token, decimals] of [
    ["asset", asset.address, STABLECOIN_DECIMALS],
    ["protocolToken", protocolToken, TOKEN_DECIMALS],
  ] as const)
    await requireAnswer(requesterOf(node), [token, DECIMALS], {
      isRight: (found) => Number(found) === decimals,
      field,
      difference: `the node has no token of ${decimals} decimals at ${token}`,
    });
}

/** Throws RefusedToSign unless a call returns what is right, with the node's own error if the call fails. */
async function requireAnswer(
  rpc: Rpc,
  [to, data]: [to: string, data: Hex],
  { isRight, field, difference }: { isRight: (answer: Hex) => boolean; field: string; difference: string },
): Promise<void> {
  const answer = await callAt(rpc, to, data).catch((error) => {
    if (error instanceof ConnectionError) throw error;
    throw new RefusedToSign(field, `the check of ${to} failed (${error.message})`, { cause: error });
  });
  if (!isRight(answer)) throw new RefusedToSign(field, difference);
}

/** Facts of an escrow, read at the caller's own node. Throws RefusedToSign unless it is one of the deployment. */
export async function escrowAt(node: ChainNode, network: Addresses, contractId: string) {
  await requireOnChain(node, network);
  return factsOf(requesterOf(node), network, contractId);
}

/** The terms in an escrow's code; undefined if it is another code. */
export const termsIn = (code: Hex = "0x"): EscrowTerms | undefined =>
  TERMS_BYTES.includes(size(code) - PROXY_BYTES) ? unpackTerms(sliceHex(code, PROXY_BYTES)) : undefined;

/** Undefined if it was never paid, or there is no escrow. */
const statusAt = async (rpc: Rpc, to: string): Promise<Status | undefined> =>
  STATUSES[Number(await callAt(rpc, to, encodeCall("status()"))) - 1];

/** Throws RefusedToSign if an escrow that is to be created is there. */
export async function requireNew(node: ChainNode, id: string): Promise<void> {
  if (await statusAt(requesterOf(node), id))
    throw new RefusedToSign(
      "payTo",
      `${id} exists: your earlier payment was used. To post another contract, change the draft`,
    );
}

async function factsOf(rpc: Rpc, network: Addresses, contractId: string) {
  const id = contractId.toLowerCase();
  const { factory, implementation } = network as { factory: Address; implementation: Address };
  // The address commits to the code, and so to the terms.
  const terms = termsIn(await rpc<Hex>("eth_getCode", [id, "latest"]));
  if (terms === undefined || escrowAddress({ factory, implementation, terms }) !== id)
    throw new RefusedToSign("payTo", `the node has no escrow of this deployment at ${id}`);
  const { parameters } = terms;
  const read = (data: Hex, to: string = id) => callAt(rpc, to, data);
  const holds = async (data: Hex, to?: string): Promise<boolean> => BigInt(await read(data, to)) !== 0n;
  const required = tokenUnits(parameters.baEligibilityStake);
  let matchedAt: number | undefined;

  /** Events of the escrow, in ranges of blocks from the newest backwards. */
  async function* eventsBack(...topics: Hex[]): AsyncGenerator<Log[]> {
    const toBlock = BigInt(await rpc<Hex>("eth_blockNumber", []));
    const read = ({ fromBlock, toBlock }: Range) => {
      const range = { fromBlock: `0x${fromBlock.toString(16)}`, toBlock: `0x${toBlock.toString(16)}` };
      return rpc<Log[]>("eth_getLogs", [{ address: id, topics: [topics], ...range }]);
    };
    yield* rangesBack({ ...network, toBlock }, read, LOG_BLOCKS);
  }

  /** An event that an escrow emits once. */
  async function emitted(signature: string): Promise<Log> {
    for await (const [log] of eventsBack(topicOf(signature))) if (log !== undefined) return log;
    throw new Error(`The node has no event ${signature} of ${id}`);
  }

  /** Meaningful once disputed. `now` is the time of the newest block. */
  async function dispute() {
    const jury = await read(encodeCall("jury()"));
    const word = (i: number) => BigInt(sliceHex(jury, 32 * i, 32 * i + 32));
    const now = await timeOf(rpc, "latest");
    const facts = { ...parameters, disputedAt: word(0), sealedVotes: Number(word(2)) };
    return { ...facts, now, closesAt: votingClosesAt(facts), isClosed: isVotingClosed(facts, now) };
  }

  const status = () => statusAt(rpc, id);
  const addressIn = async (view: string) => `0x${(await read(encodeCall(view))).slice(-40)}`;

  return {
    terms,
    status,
    /** Throws RefusedToSign in another status. */
    async requireStatus(expected: Status | undefined): Promise<void> {
      const actual = await status();
      if (actual !== expected)
        throw new RefusedToSign("status", `the escrow ${id} is ${actual}, not ${expected}`);
    },
    /** Lower case; zero if no one has accepted a listing. */
    client: () => addressIn("client()"),
    /** Its counterparty, as long as someone has accepted. */
    acceptor: () => addressIn(terms.workerInitiated ? "client()" : "worker()"),
    deliveryHash: async () =>
      sliceHex((await emitted("WorkingContractDelivered(bytes32,bytes32,uint24)")).data, 0, 32),
    /** 32 bytes; zero without a vote. */
    ballotOf: (agent: Address) => read(encodeCall("ballotOf(address)", agent)),
    dispute,
    /** Those who were drawn or have voted, lower case. Throws without a dispute. */
    async backupAgents(): Promise<Set<string>> {
      const found = new Set<string>();
      for await (const logs of eventsBack(DISPUTED, DRAWN, SEALED)) {
        for (const { topics, data } of logs) {
          // The drawn agents are a list: its place, its length, its words.
          const words = topics[0] === DRAWN ? data.slice(2).match(/.{64}/g)?.slice(2) : topics.slice(1);
          for (const word of words ?? []) found.add(`0x${word.slice(-40)}`);
        }
        if (logs.some(({ topics }) => topics[0] === DISPUTED)) return found;
      }
      throw new Error(`The node has no event of the dispute of ${id}`);
    },
    /** Whether an agent was drawn, has voted, or can vote now. */
    async mayVote(agent: Address): Promise<boolean> {
      for (const mapping of ["ballotOf", "isDrawn"])
        if (await holds(encodeCall(`${mapping}(address)`, agent))) return true;
      const open = await dispute();
      if (open.isClosed) return false;
      if (open.baRecruitCount > 0 && open.now < seatsOpenAt(open)) return false;
      // A stake counts only if it was there before the match.
      matchedAt ??= await timeOf(rpc, (await emitted("WorkingContractMatched(address,uint256)")).blockNumber);
      return holds(
        encodeCall("isEligible(address,uint256,uint40)", agent, required, matchedAt),
        network.registry,
      );
    },
  };
}

/**
 * Reads an escrow; undefined while there is none of this deployment. Throws ConnectionError if the node cannot say, also
 * for the first 30 seconds in which it shows another deployment: a replica can be behind.
 */
function readerOf<T>(
  [node, network, id]: [node: ChainNode, network: Addresses, id: string],
  read: (escrow: Awaited<ReturnType<typeof escrowAt>>) => Promise<T>,
) {
  let found: ReturnType<typeof escrowAt> | undefined;
  let differsSince: number | undefined;
  return async (): Promise<T | undefined> => {
    try {
      found ??= escrowAt(node, network, id);
      const value = await read(await found);
      differsSince = undefined;
      return value;
    } catch (error) {
      found = undefined;
      const { field, cause, message } = error as RefusedToSign;
      const now = performance.now();
      const differs = field && field !== "payTo" && !cause;
      differsSince = differs ? (differsSince ?? now) : undefined;
      if (field === "payTo") return undefined;
      if (field === "chain" || now - (differsSince ?? now) > LAG_MS) throw error;
      throw new ConnectionError(message, { cause: error });
    }
  };
}

/** Throws NotOnChain unless the node shows an action that the service reports as done; ConnectionError if it cannot say. */
export async function requireDone(
  { network, http, signer }: Session,
  node: ChainNode,
  { action, id }: { action: keyof typeof LED_TO; id: string },
): Promise<void> {
  const me = signer.address.toLowerCase();
  const read = readerOf([node, network, id], async ({ status, dispute, acceptor }) => {
    const shown = await status();
    if (!shown || !matches(shown, LED_TO[action])) return shown;
    // Without a dispute too, a contract is decided.
    if (action === "dispute" && !(await dispute()).disputedAt) return shown;
    // Someone else can have accepted it.
    const by = action === "accept" ? await acceptor() : me;
    return by === me || `accepted by ${by}`;
  });
  // A call that is resumed after an abort still needs the outcome.
  const signal = http.signal?.aborted ? undefined : http.signal;
  let answeredAt = performance.now();
  const isDone = async () => {
    const shown = (await read()) ?? "not paid";
    answeredAt = performance.now();
    return shown;
  };
  const isTrue = (shown: unknown) => shown === true;
  await waitUntil(isDone, isTrue, { timeoutMs: LAG_MS, signal }).catch((error) => {
    signal?.throwIfAborted();
    const reported = `The service reports ${action} on ${id} as done, but your node`;
    if (isOutage(error) || performance.now() - answeredAt > SILENCE_MS)
      throw new ConnectionError(`${reported} cannot confirm it (${error.message})`, { cause: error });
    const advice =
      action === "create"
        ? "do not post again until its payment has expired, unless this program repeats the same draft"
        : "act yourself before the deadline (onChain, wcontract on-chain)";
    throw new NotOnChain(`${reported} does not (${error.message}): ${advice}.`, id, error);
  });
}

/**
 * Reads a contract with the status that the node shows: once the service shows the same, or after 30 seconds, but by half
 * of the time that is left. Then also while the service does not respond, if it did before. Throws ConnectionError until
 * then, and NotOnChain if the node has no such contract after it.
 */
export function provenReader(
  served: (signal: AbortSignal) => Promise<Contract>,
  [node, network, id]: [node: ChainNode, network: Addresses, id: string],
  { timeoutMs = Infinity }: WaitOptions<Contract>,
): (signal: AbortSignal) => Promise<Contract> {
  // A node's error for another text would be waited for.
  if (!/^0x[\da-f]{40}$/i.test(id)) throw new RangeError(`${id} is not a contract id`);
  const read = readerOf([node, network, id], ({ status }) => status());
  const deadline = performance.now() + timeoutMs;
  let known: Contract | undefined;
  /** Until when the two may differ. */
  let end: number | undefined;
  return async (signal) => {
    const now = performance.now();
    const patienceMs = Math.ceil(Math.max(0, Math.min(LAG_MS, (deadline - now) / 2)));
    const status = await read();
    end ??= now + patienceMs;
    const slow = AbortSignal.timeout(patienceMs || LAG_MS);
    let failure: Error | undefined;
    try {
      known = await served(AbortSignal.any([signal, slow]));
      if (known.status === status) end = undefined;
    } catch (error) {
      failure = slow.aborted ? new ConnectionError("The service did not respond in time") : (error as Error);
      if (!known || !isOutage(failure)) throw failure;
    }
    if (end === undefined) return known;
    const difference = `The service shows ${id} as ${known.status}, and your node as ${status ?? "not paid"}`;
    if (performance.now() < end) throw failure ?? new ConnectionError(difference);
    if (status === undefined) throw new NotOnChain(difference, id);
    return { ...known, status };
  };
}

/** In seconds. */
async function timeOf(rpc: Rpc, block: Hex | "latest"): Promise<number> {
  return Number((await rpc<{ timestamp: Hex }>("eth_getBlockByNumber", [block, false])).timestamp);
}

/** An agent's newest delegation on chain. Throws RefusedToSign if the escrows obey another operator. */
export async function grantAt(node: ChainNode, network: Addresses, agent: Address) {
  await requireOnChain(node, network);
  const rpc = requesterOf(node);
  await requireAnswer(rpc, [network.implementation, DEPENDENCIES], {
    isRight: (found) => sliceHex(found, 64, 96) === padHex(network.relay as Hex, { size: 32 }),
    field: "relay",
    difference: `the escrows' operator is not ${network.relay}`,
  });
  const data = encodeCall("grants(address,address)", agent, network.relay as Address);
  const grant = await callAt(rpc, network.relay, data);
  const [issuedAt, revokedAt, until, actions] = [0, 32, 64, 96].map((at) =>
    Number(sliceHex(grant, at, at + 32)),
  ) as [number, number, number, number];
  const isInForce = issuedAt > revokedAt && (until === 0 || (await timeOf(rpc, "latest")) < until);
  return { issuedAt, revokedAt, until, actions: isInForce ? actions : 0 };
}

/** Waits until no wider delegation than the signed one is in force on chain. Throws if that takes too long. */
export async function requireNotWider(
  { network, signer, permission, http }: Pick<Session, "network" | "signer" | "permission" | "http">,
  node: ChainNode,
): Promise<void> {
  const { actions, until } = permission;
  const isNotWider = (grant: Permission) =>
    (grant.actions & ~actions) === 0 &&
    (grant.actions === 0 || until === 0 || (grant.until !== 0 && grant.until <= until));
  const stateOf = () =>
    "On chain, a wider delegation than you just signed is still in force. End it yourself (`onChain`: `revoke` or `register`; wcontract on-chain)";
  const wait = { timeoutMs: REGISTRATION_MS, signal: http.signal, stateOf };
  await waitUntil(() => grantAt(node, network, signer.address), isNotWider, wait);
}

/** The nonce that the agent's signed actions need at an escrow or the registry. */
export async function signatureNonceAt(node: ChainNode, contract: string, agent: Address): Promise<bigint> {
  const data = encodeCall("signatureNonce(address)", agent);
  return BigInt(await callAt(requesterOf(node), contract, data));
}
