/**
 * Votes that the service cannot read: the voter sends a commitment, and opens it once no one else can vote. The salt
 * comes from a signature, and the votes from the salt and the commitment, so there is nothing to keep.
 */
import { toHex } from "@working-contracts/protocol/hex";
import {
  bondNonce,
  findVotes,
  isCommitment,
  packOutcomes,
  voteCommitment,
} from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { escrowAt } from "./chain-check.js";
import { isOutage, RefusedToSign, ServiceError } from "./errors.js";
import { pause } from "./http.js";
import type { OnChainOptions } from "./on-chain.js";
import type { ChainNode } from "./rpc.js";
import {
  call,
  everyEvent,
  everyItem,
  type PageQuery,
  pay,
  reads,
  type Session,
  type ToEscrow,
  votesKey,
} from "./session.js";
import { requireNotAhead } from "./signing.js";
import { dueToVote } from "./terms.js";
import type { Outcome, Vote } from "./types.js";
import { waitUntil } from "./wait.js";
import { voteSalt } from "./wallets.js";

/** By default only the voter can open its vote, and needs to keep nothing for it. */
export interface VoteOptions {
  /** Lets the service seal, keep and open the votes; it can read them before the tally. */
  entrust?: boolean;
  /** 32 random bytes to keep, for a wallet that signs differently each time. By default it comes from a signature. */
  salt?: Hex;
}

/** By default, every sealed vote of the agent is opened. Times are in milliseconds. */
export interface OpenOptions {
  /** Whether to wait until every sealed vote of this agent could be opened; the default. */
  wait?: boolean;
  intervalMs?: number;
  signal?: AbortSignal;
  /** Opens the vote on this contract alone. */
  id?: string;
  /** Salts that were passed to `vote`, by contract id. */
  salts?: Record<string, Hex>;
  onOpened?: (id: string) => void;
  /** Called once for each vote that the service refuses to open, or cannot; without an id if it refuses the list. */
  onFailure?: (error: Error, id?: string) => void;
}

const INTERVAL_MS = 15_000;
/** How many votes the service can list, and how long it can take for an agent with a node: others must not wait. */
const MAX_LISTED = 5_000;
const LIST_MS = 600_000;
/** How long the node is asked whether a vote is open on chain, after the service said so. */
const CONFIRMATION_MS = 10_000;
/** Seconds after the voting window in which a vote that is not open yet can be the service's delay. */
const GRACE = 3600;
/** Account nonces that a node can name for the transaction that opens a vote: the chain takes one for each. */
const MAX_NONCES = 4;
/** Seconds after the voting window in which a vote can be opened. */
const OPENING = 86_400;
const BEFORE_DISPUTE: readonly (Status | undefined)[] = ["created", "matched", "under-review", undefined];
const ALONE = "open it yourself (onChain of the client, wcontract on-chain open-vote)";

/** A vote of which only the voter can learn more. */
class NotOpened extends Error {}

/** The two calls of actions.ts, which loads them with the first vote. */
export type Voting = ReturnType<typeof votes>;

type Escrow = Awaited<ReturnType<typeof escrowAt>>;
type Opening = Awaited<ReturnType<typeof openingOf>>;

/** An agent that votes, and what it knows of its votes. */
interface Voter {
  session: Session;
  address: Address;
  /** Contracts on which nothing is left to open. */
  done: Set<string>;
  escrows: Map<string, Escrow>;
  /** The account nonces of the agent's own transactions for each vote. */
  nonces: Map<string, Set<number>>;
}

/** A vote that is opened once it is due. */
interface Due {
  id: string;
  /** By default it comes from a signature. */
  salt: Hex | undefined;
  wait: boolean;
  onRefused(error: Error): void;
}

/** An agent's votes; actions.ts documents the two calls. */
export function votes(session: Session, toEscrow: ToEscrow) {
  const address = session.signer.address.toLowerCase() as Address;
  const voter: Voter = { session, address, done: new Set(), escrows: new Map(), nonces: new Map() };
  const { network, node, submitted } = session;

  return {
    async vote(
      id: string,
      words: readonly Outcome[],
      { entrust = false, salt }: VoteOptions = {},
    ): Promise<{ votes: Vote[]; salt: Hex }> {
      const random = () => toHex(crypto.getRandomValues(new Uint8Array(32)));
      const ballot = await ballotOf(voter, id, salt ?? (entrust ? random() : undefined));
      const commitment = voteCommitment({ ...ballot, votes: packOutcomes(words) });
      const keep = async () => submitted.add(votesKey(network), id.toLowerCase() as Hex);
      return pay(session, "POST /v1/contracts/{id}/votes", {
        path: { id },
        body: JSON.stringify(entrust ? { votes: entriesOf(words), salt: ballot.salt } : { commitment }),
        // The bond then signs the votes: no one can carry it with others.
        nonce: bondNonce(commitment),
        expect: toEscrow(id, dueToVote(words)),
        // With a node before it is signed: the service could hide that it was used, and the chain will tell.
        ...(node !== undefined && !entrust && { beforeSigning: keep }),
        parse: async ({ data }) => {
          if (node === undefined && !entrust)
            await keep().catch((cause: Error) => {
              const advice =
                "open the vote within a day of the end of voting (openVotes, wcontract open-votes)";
              throw new Error(
                `You voted on ${id}, but this could not be saved here (${cause.message}): ${advice}`,
              );
            });
          return {
            // By what was voted: the service can list anything.
            votes: entriesOf(words).map((one) => ({ ...data[one.criterionIndex], ...one })) as Vote[],
            salt: ballot.salt,
          };
        },
      });
    },

    openVotes: (options: OpenOptions = {}) => openVotes(voter, options),
  };
}

/** Opens the due votes, in rounds while others still wait. Returns the contracts whose vote it opened. */
async function openVotes(
  voter: Voter,
  {
    wait = true,
    intervalMs = INTERVAL_MS,
    signal,
    salts: given = {},
    onOpened,
    onFailure,
    id: only,
  }: OpenOptions,
) {
  const { done, session } = voter;
  const { node, network, submitted } = session;
  const opened: string[] = [];
  /** Why a vote cannot be opened, by contract. */
  const failures = new Map<string, unknown>();
  /** Contracts whose vote the service refuses to open; undefined is the list. */
  const reported = new Set<string | undefined>();
  const salts = new Map(Object.entries(given).map(([id, salt]) => [id.toLowerCase(), salt]));
  const refused = (error: unknown, id?: string): void => {
    if (!reported.has(id)) onFailure?.(error as Error, id);
    reported.add(id);
  };

  /** Opens each vote that is due. Returns whether others still wait, and the service's refusal to list the votes. */
  async function openDue() {
    const { list, reason } = await listOrReason(voter, wait);
    let isWaiting = wait && isOutage(reason);
    const unlisted = isOutage(reason) ? undefined : reason;
    if (unlisted !== undefined) refused(unlisted);
    const ids = new Set<string>(await submitted.read(votesKey(network)));
    for (const [id, isSealed] of list ?? []) if (isSealed) ids.add(id);
    for (const id of ids) {
      if ((only?.toLowerCase() ?? id) !== id || done.has(id) || failures.has(id)) continue;
      const due: Due = { id, wait, salt: salts.get(id), onRefused: (error) => refused(error, id) };
      try {
        const isOpened = await (node === undefined
          ? openListed(voter, due, list)
          : openProven(voter, due, node));
        if (isOpened) {
          done.add(id);
          opened.push(id);
          onOpened?.(id);
        } else isWaiting ||= !done.has(id);
      } catch (error) {
        // A record of another chain, or the node is behind: that keeps no one waiting.
        if (error instanceof RefusedToSign && error.field === "payTo" && !list?.get(id)) continue;
        if (wait && isTemporary(error)) isWaiting = true;
        // One vote must not keep the others closed.
        else {
          failures.set(id, error);
          onFailure?.(error as Error, id);
        }
      }
    }
    return { isWaiting, unlisted };
  }

  for (;;) {
    const { isWaiting, unlisted } = await openDue();
    if (!wait || !isWaiting) {
      for (const error of [...failures.values(), unlisted]) if (error !== undefined) throw error;
      return opened;
    }
    await pause(intervalMs, signal);
  }
}

/** The service's list, or why there is none. Without a node, only an outage is waited for: throws any other error. */
async function listOrReason(
  { session, address }: Voter,
  wait: boolean,
): Promise<{ list: Map<string, boolean> | null; reason?: unknown }> {
  const { http, node } = session;
  const read = (signal: AbortSignal) => listed({ ...session, http: http.until(signal) }, address);
  const limited = { timeoutMs: LIST_MS, intervalMs: Infinity };
  try {
    return {
      list: await (node === undefined ? listed(session, address) : waitUntil(read, () => true, limited)),
    };
  } catch (reason) {
    http.signal?.throwIfAborted();
    // With a node, nothing that the service answers may keep a vote closed.
    if (node === undefined && !(wait && isOutage(reason))) throw reason;
    return { list: null, reason };
  }
}

/** An agent's votes in disputes, as the service lists them: whether only the agent can open them, by contract. */
async function listed(session: Session, backupAgent: Address): Promise<Map<string, boolean>> {
  const isSealed = new Map<string, boolean>();
  const query = { backupAgent, status: "disputed", limit: 200 };
  const read = (page: Pick<PageQuery, "cursor">) =>
    call(session, "GET /v1/votes", { query: { ...query, ...page } });
  for await (const { contractId, vote } of everyItem(read)) {
    isSealed.set(contractId, vote === null);
    if (isSealed.size === MAX_LISTED) break;
  }
  return isSealed;
}

/** Opens one vote if it is due, as the service says. Throws if it does not list a vote in a dispute. */
async function openListed(voter: Voter, due: Due, list: Map<string, boolean> | null): Promise<boolean> {
  const { session, address, done } = voter;
  const { id } = due;
  if (list !== null && !list.get(id)) {
    if (!list.has(id) && (await reads(session).get(id)).status === "disputed")
      throw new NotOpened(`The service does not list your vote on ${id}: ${ALONE}`);
    done.add(id);
    return false;
  }
  let [commitment, isDue]: [unknown, boolean] = [undefined, false];
  const query = { contractId: id, agent: address, type: "vote.sealed,deadline.approaching" };
  for await (const { data } of everyEvent((query) => call(session, "GET /v1/events", { query }), query)) {
    commitment = data.commitment ?? commitment;
    isDue ||= data.deadline === "openingDeadline";
  }
  return isDue && send(session, id, await openingOf(voter, due, commitment as Hex));
}

/** Opens one vote if it is due, as the chain says. Throws if the service should have opened it, and has not. */
async function openProven(voter: Voter, due: Due, node: ChainNode): Promise<boolean> {
  const { session, address, done, escrows } = voter;
  const { id } = due;
  const escrow =
    escrows.get(id) ?? (await (await import("./chain-check.js")).escrowAt(node, session.network, id));
  escrows.set(id, escrow);
  const ballot = await escrow.ballotOf(address);
  const dispute = await escrow.dispute();
  // A node whose clock is ahead would have the vote opened early.
  if (session.clock !== "service") requireNotAhead(dispute.now, "the node");
  const step = nextStep(ballot, dispute, await escrow.status());
  if (step === "done" || step === "missed") done.add(id);
  if (step === "missed")
    throw new NotOpened(`Your vote on ${id} was not opened in time, and can no longer be`);
  if (step === "done" || step === "wait") return false;
  const opening = await openingOf(voter, due, ballot);
  return openSealed(voter, due, { node, escrow, opening, isLate: step === "open-late" });
}

/** The next step for a vote, by the chain. At `open-late`, the voter no longer waits for the service. */
function nextStep(
  ballot: Hex,
  { now, closesAt, isClosed }: Awaited<ReturnType<Escrow["dispute"]>>,
  status: Status | undefined,
): "wait" | "open" | "open-late" | "missed" | "done" {
  const isSealed = isCommitment(ballot);
  const isOpened = !isSealed && BigInt(ballot) !== 0n;
  const isLate = now >= closesAt + GRACE;
  // A node can lag behind the service.
  if (BEFORE_DISPUTE.includes(status)) return "wait";
  if (isOpened || (isLate && !isSealed) || status !== "disputed") return "done";
  if (now >= closesAt + OPENING) return "missed";
  // A payment that was signed can become a vote until no one else can vote.
  if (!isSealed || !isClosed) return "wait";
  return isLate ? "open-late" : "open";
}

/** Opens a vote that is due: at the service, and if it `isLate`, also with a transaction of the agent's own. */
async function openSealed(
  voter: Voter,
  { id, wait, onRefused }: Due,
  { node, escrow, opening, isLate }: { node: ChainNode; escrow: Escrow; opening: Opening; isLate: boolean },
): Promise<boolean> {
  const { session, address } = voter;
  const isConfirmed = (word: Hex) => !isCommitment(word);
  const isOpen = (timeoutMs: number) =>
    waitUntil(() => escrow.ballotOf(address), isConfirmed, { timeoutMs }).catch((error) => {
      if (isOutage(error)) throw error;
    });
  const reasons = [`Your vote on ${id} is still sealed at the node: ${ALONE}`];
  // The service can withhold the vote with any answer.
  const isSent = await send(session, id, opening).catch((error) => {
    session.http.signal?.throwIfAborted();
    if (!isLate && !wait) throw error;
    if (!isOutage(error)) onRefused(error);
    reasons.push(error.message);
    return null;
  });
  if (!isSent && wait && !isLate) return false;
  if (isSent !== null && (await isOpen(CONFIRMATION_MS))) return true;
  if (isLate) {
    const failure = await openAlone(voter, node, { id, salt: opening.salt }).catch((error: Error) => error);
    if (failure) reasons.push(failure.message);
    if (await isOpen(failure ? 0 : CONFIRMATION_MS)) return true;
  }
  throw new NotOpened(reasons.join(": "));
}

/** With a transaction of the agent's own, if it can send one. */
async function openAlone(
  { session, nonces }: Voter,
  node: ChainNode,
  { id, salt }: { id: string; salt: Hex },
): Promise<void> {
  const { signer, network, maxGasCost, clock } = session;
  if (typeof node !== "string" || !("signTransaction" in signer))
    throw new Error("this account cannot send transactions");
  const { onChainActions } = await import("./on-chain.js");
  const own = signer as unknown as OnChainOptions["account"];
  const account: typeof own = {
    ...own,
    async signTransaction(transaction, ...rest) {
      const named = nonces.get(id) ?? new Set();
      nonces.set(id, named.add(Number(transaction.nonce)));
      if (named.size > MAX_NONCES) throw new Error("the node named too many account nonces");
      return own.signTransaction(transaction, ...rest);
    },
  };
  await onChainActions({ rpcUrl: node, account, network, maxGasCost, clock }).openVote(id, salt);
}

/** The votes behind a commitment. Throws if the salt is another one. */
async function openingOf(voter: Voter, { id, salt }: Pick<Due, "id" | "salt">, commitment: Hex) {
  const ballot = await ballotOf(voter, id, salt);
  const words = findVotes(commitment, ballot);
  if (words !== null) return { votes: entriesOf(words), salt: ballot.salt };
  throw new NotOpened(`This salt does not open the vote on ${id}; pass the one of the vote`);
}

async function send(session: Session, id: string, body: Opening): Promise<boolean> {
  try {
    await call(session, "POST /v1/contracts/{id}/votes/open", { path: { id }, body });
    return true;
  } catch (error) {
    // Not yet, or the voter's other program opened it.
    if (error instanceof ServiceError && error.code === "conflict") return false;
    throw error;
  }
}

/** By default with the salt that the agent's signature gives. */
async function ballotOf({ session: { network, signer }, address }: Voter, id: string, salt?: Hex) {
  const ballot = { chainId: network.chainId, escrow: id.toLowerCase() as Address, voter: address };
  return { ...ballot, salt: salt ?? (await voteSalt(signer, { ...network, ...ballot })) };
}

/** Outages and a node's errors pass; not those that the service or the voter has to remove. */
const isTemporary = (error: unknown): boolean =>
  isOutage(error) || ![ServiceError, RefusedToSign, NotOpened].some((kind) => error instanceof kind);

const entriesOf = (words: readonly Outcome[]) =>
  words.map((vote, criterionIndex) => ({ criterionIndex, vote }));
