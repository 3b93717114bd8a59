/**
 * Votes that the service cannot read: the voter sends a commitment, and opens it once no one else can vote. The salt
 * comes from a signature, and the votes from the salt and the commitment, so there is nothing to keep.
 */
import { toHex } from "@working-contracts/protocol/hex";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import {
  bondNonce,
  findVotes,
  isCommitment,
  packOutcomes,
  voteCommitment,
} from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { escrowAt, Node } from "./chain-check.js";
import { isOutage, RefusedToSign, ServiceError } from "./errors.js";
import { type Http, pause } from "./http.js";
import type { OnChainOptions } from "./on-chain.js";
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
/** How long the service can take to list votes, and how many it can list, for an agent with a node: others must not wait. */
const LIST_MS = 600_000;
const MAX_LISTED = 5_000;
/** How long the node is asked whether a vote is open on chain, after the service said so. */
const CONFIRMATION_MS = 10_000;
/** Seconds after the voting window in which a vote that is not open yet can be the service's delay. */
const GRACE = 3600;
/** Account nonces that a node can name for the transaction that opens a vote: the chain takes one for each. */
const MAX_NONCES = 4;
/** Seconds after the voting window in which a vote can be opened. */
const OPENING = 86_400;
const BEFORE_DISPUTE = ["created", "matched", "under-review", undefined];
const ALONE = "open it yourself (onChain of the client, wcontract on-chain open-vote)";

/** A vote of which only the voter can learn more. */
class NotOpened extends Error {}

/** The two calls of actions.ts, which loads them with the first vote. */
export type Voting = ReturnType<typeof votes>;

/** An agent's votes; actions.ts documents the two calls. */
export function votes(session: Session, toEscrow: ToEscrow) {
  const { network, node, signer, maxGasCost, clock } = session;
  const voter = signer.address.toLowerCase() as Address;
  const ballotOf = (id: string) => ({ chainId: network.chainId, escrow: id.toLowerCase() as Address, voter });
  const saltOf = (id: string) => voteSalt(signer, { ...network, ...ballotOf(id) });

  const { get } = reads(session);
  const kept = votesKey(network);
  /** Contracts on which nothing is left to open. */
  const done = new Set<string>();
  const escrows = new Map<string, Awaited<ReturnType<typeof escrowAt>>>();
  /** The account nonces of the agent's own transactions for each vote. */
  const nonces = new Map<string, Set<number>>();

  /** The caller's votes in disputes, as the service lists them: whether only the caller can open them, by contract. */
  async function listed(http: Http): Promise<Map<string, boolean>> {
    const isSealed = new Map<string, boolean>();
    const query = { backupAgent: voter, status: "disputed", limit: 200 };
    const read = (page: Pick<PageQuery, "cursor">) =>
      call({ ...session, http }, "GET /v1/votes", { query: { ...query, ...page } });
    for await (const { contractId, vote } of everyItem(read)) {
      isSealed.set(contractId, vote === null);
      if (node !== undefined && isSealed.size === MAX_LISTED) break;
    }
    return isSealed;
  }

  /** Opens one vote if it is due, as the service says. Throws if it does not list a vote in a dispute. */
  async function openListed(id: string, list: Map<string, boolean> | null, given?: Hex): Promise<boolean> {
    if (list !== null && !list.get(id)) {
      if (!list.has(id) && (await get(id)).status === "disputed")
        throw new NotOpened(`The service does not list your vote on ${id}: ${ALONE}`);
      done.add(id);
      return false;
    }
    let [commitment, isDue]: [unknown, boolean] = [undefined, false];
    const query = { contractId: id, agent: voter, type: "vote.sealed,deadline.approaching" };
    for await (const { data } of everyEvent((query) => call(session, "GET /v1/events", { query }), query)) {
      commitment = data.commitment ?? commitment;
      isDue ||= data.deadline === "openingDeadline";
    }
    return isDue && send(id, await openingOf(id, commitment as Hex, given));
  }

  /** Opens one vote if it is due, as the chain says. Throws if the service should have opened it, and has not. */
  async function openProven(
    id: string,
    node: Node,
    { wait, given, onRefused }: { wait: boolean; given?: Hex | undefined; onRefused(error: Error): void },
  ) {
    const escrow = escrows.get(id) ?? (await (await import("./chain-check.js")).escrowAt(node, network, id));
    escrows.set(id, escrow);
    const ballot = await escrow.ballotOf(voter);
    const dispute = await escrow.dispute();
    // A node whose clock is ahead would have the vote opened early.
    if (clock !== "service") requireNotAhead(dispute.now, "the node");
    const isSealed = isCommitment(ballot);
    const isOpened = !isSealed && BigInt(ballot) !== 0n;
    const isLate = dispute.now >= dispute.closesAt + GRACE;
    const status = await escrow.status();
    // A node can lag behind the service.
    if (BEFORE_DISPUTE.includes(status)) return false;
    if (isOpened || (isLate && !isSealed) || status !== "disputed") {
      done.add(id);
      return false;
    }
    if (dispute.now >= dispute.closesAt + OPENING) {
      done.add(id);
      throw new NotOpened(`Your vote on ${id} was not opened in time, and can no longer be`);
    }
    // A payment that was signed can become a vote until no one else can vote.
    if (!isSealed || !dispute.isClosed) return false;
    const isConfirmed = (word: Hex) => !isCommitment(word);
    const isOpen = (timeoutMs: number) =>
      waitUntil(() => escrow.ballotOf(voter), isConfirmed, { timeoutMs }).catch((error) => {
        if (isOutage(error)) throw error;
      });
    const reasons = [`Your vote on ${id} is still sealed at the node: ${ALONE}`];
    const opening = await openingOf(id, ballot, given);
    // The service can withhold the vote with any answer.
    const isSent = await send(id, opening).catch((error) => {
      session.http.signal?.throwIfAborted();
      if (!isLate && !wait) throw error;
      if (!isOutage(error)) onRefused(error);
      reasons.push(error.message);
      return null;
    });
    if (!isSent && wait && !isLate) return false;
    if (isSent !== null && (await isOpen(CONFIRMATION_MS))) return true;
    if (isLate) {
      const failure = await openAlone(id, node, opening.salt).catch((error: Error) => error);
      if (failure) reasons.push(failure.message);
      if (await isOpen(failure ? 0 : CONFIRMATION_MS)) return true;
    }
    throw new NotOpened(reasons.join(": "));
  }

  /** With a transaction of the agent's own, if it can send one. */
  async function openAlone(id: string, rpcUrl: Node, salt: Hex): Promise<void> {
    if (typeof rpcUrl !== "string" || !("signTransaction" in signer))
      throw new Error("this account sends no transactions");
    const { onChainActions } = await import("./on-chain.js");
    const own = signer as unknown as OnChainOptions["account"];
    const account: typeof own = {
      ...own,
      async signTransaction(transaction, ...rest) {
        const named = nonces.get(id) ?? new Set();
        nonces.set(id, named.add(Number(transaction.nonce)));
        if (named.size > MAX_NONCES) throw new Error("the node names one account nonce after the other");
        return own.signTransaction(transaction, ...rest);
      },
    };
    await onChainActions({ rpcUrl, account, network, maxGasCost, clock }).openVote(id, salt);
  }

  async function openingOf(id: string, commitment: Hex, given?: Hex) {
    const salt = given ?? (await saltOf(id));
    const words = findVotes(commitment, { ...ballotOf(id), salt });
    if (words !== null) return { votes: entriesOf(words), salt };
    throw new NotOpened(`This salt does not open the vote on ${id}; pass the one of the vote`);
  }

  async function send(id: string, body: Awaited<ReturnType<typeof openingOf>>): Promise<boolean> {
    try {
      await call(session, "POST /v1/contracts/{id}/votes/open", { path: { id }, body });
      return true;
    } catch (error) {
      // Not yet, or the voter's other program opened it.
      if (error instanceof ServiceError && error.code === "conflict") return false;
      throw error;
    }
  }

  /** The service's list, or why there is none. Without a node, only an outage is waited for: throws any other error. */
  async function listOrReason(
    wait: boolean,
  ): Promise<{ list: Map<string, boolean> | null; reason?: unknown }> {
    const { http } = session;
    const read = (signal: AbortSignal) => listed(http.until(signal));
    const limited = { timeoutMs: LIST_MS, intervalMs: Infinity };
    try {
      return { list: await (node === undefined ? listed(http) : waitUntil(read, () => true, limited)) };
    } catch (reason) {
      http.signal?.throwIfAborted();
      // With a node, nothing that the service answers may keep a vote closed.
      if (node === undefined && !(wait && isOutage(reason))) throw reason;
      return { list: null, reason };
    }
  }

  return {
    async vote(
      id: string,
      words: readonly Outcome[],
      { entrust = false, salt }: VoteOptions = {},
    ): Promise<{ votes: Vote[]; salt: Hex }> {
      const random = () => toHex(crypto.getRandomValues(new Uint8Array(32)));
      const sealing = salt ?? (entrust ? random() : await saltOf(id));
      const commitment = voteCommitment({ ...ballotOf(id), votes: packOutcomes(words), salt: sealing });
      const expect = toEscrow(id, "disputed", ({ price, parameters, criteriaCount }) => {
        // A commitment to another number of outcomes could never be opened.
        if (words.length !== criteriaCount)
          throw new RangeError(`${words.length} outcomes for ${criteriaCount} criteria`);
        return { amount: voteDeposit(price, criteriaCount, parameters) };
      });
      const keep = async () => session.submitted.add(kept, id.toLowerCase() as Hex);
      return pay(session, "POST /v1/contracts/{id}/votes", {
        path: { id },
        body: JSON.stringify(entrust ? { votes: entriesOf(words), salt: sealing } : { commitment }),
        // The bond then signs the votes: no one can carry it with others.
        nonce: bondNonce(commitment),
        expect,
        // With a node before it is signed: the service could hide that it was used, and the chain will tell.
        ...(node !== undefined && !entrust && { beforeSigning: keep }),
        open: async ({ data }, headers) => {
          if (node === undefined && !entrust)
            await keep().catch((cause: Error) => {
              const advice =
                "open the vote within a day of the end of voting (openVotes, wcontract open-votes)";
              throw new Error(
                `You voted on ${id}, which could not be stored here (${cause.message}): ${advice}`,
              );
            });
          return {
            votes: data.map((one) => ({ ...one, vote: words[one.criterionIndex] ?? null })),
            salt: (headers.get("vote-salt") as Hex | null) ?? sealing,
          };
        },
      });
    },

    async openVotes({
      wait = true,
      intervalMs = INTERVAL_MS,
      signal,
      salts = {},
      onOpened,
      onFailure,
      id: only,
    }: OpenOptions = {}) {
      const opened: string[] = [];
      /** Why a vote cannot be opened, by contract. */
      const failures = new Map<string, unknown>();
      /** Contracts whose vote the service refuses to open; undefined is the list. */
      const reported = new Set<string | undefined>();
      const given = new Map(Object.entries(salts).map(([id, salt]) => [id.toLowerCase(), salt]));
      const refused = (error: unknown, id?: string): void => {
        if (!reported.has(id)) onFailure?.(error as Error, id);
        reported.add(id);
      };

      /** Opens each vote that is due. Returns whether others still wait, and the service's refusal to list the votes. */
      async function openDue() {
        const { list, reason } = await listOrReason(wait);
        let isWaiting = wait && isOutage(reason);
        const unlisted = isOutage(reason) ? undefined : reason;
        if (unlisted !== undefined) refused(unlisted);
        const ids = new Set<string>(await session.submitted.read(kept));
        for (const [id, isSealed] of list ?? []) if (isSealed) ids.add(id);
        for (const id of ids) {
          if ((only?.toLowerCase() ?? id) !== id || done.has(id) || failures.has(id)) continue;
          const options = { wait, given: given.get(id), onRefused: (error: Error) => refused(error, id) };
          try {
            const isOpened = await (node === undefined
              ? openListed(id, list, options.given)
              : openProven(id, node, options));
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
    },
  };
}

/** Outages and a node's errors pass; not those that the service or the voter has to remove. */
const isTemporary = (error: unknown): boolean =>
  isOutage(error) || ![ServiceError, RefusedToSign, NotOpened].some((kind) => error instanceof kind);

const entriesOf = (words: readonly Outcome[]) =>
  words.map((vote, criterionIndex) => ({ criterionIndex, vote }));
