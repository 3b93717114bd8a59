/**
 * Votes that the service cannot read: the voter sends a commitment, and opens it once no one else can vote. The salt
 * comes from a signature, and the votes from the salt and the commitment, so there is nothing to keep.
 */
import { encodeCall } from "@working-contracts/protocol/calls";
import { toHex } from "@working-contracts/protocol/hex";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import { bondNonce, findVotes, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { isOutage, ServiceError } from "./errors.js";
import { pause } from "./http.js";
import { secretOf } from "./secrets.js";
import { call, pay, type Session, type ToEscrow } from "./session.js";
import type { Outcome, Vote } from "./types.js";
import type { Signer } from "./wallets.js";

export interface VoteOptions {
  /** Lets the service seal, keep and open the votes; it can read them before the tally. */
  entrust?: boolean;
  /** 32 random bytes to keep, for a wallet that signs differently each time. By default it comes from a signature. */
  salt?: Hex;
}

export interface OpenOptions {
  /** Whether to wait until every sealed vote of this agent could be opened; the default. */
  wait?: boolean;
  intervalMs?: number;
  signal?: AbortSignal;
  /** Salts that were passed to `vote`, by contract id. */
  salts?: Record<string, Hex>;
  /** Called for each vote that is opened. */
  onOpened?: (id: string) => void;
}

const INTERVAL_MS = 15_000;

export function votes(session: Session, toEscrow: ToEscrow) {
  const { network, signer } = session;
  const voter = signer.address.toLowerCase() as Address;
  const ballotOf = (id: string) => ({ chainId: network.chainId, escrow: id.toLowerCase() as Address, voter });

  /** Contracts on which only the caller can open its vote. */
  async function sealedVotes(): Promise<string[]> {
    const sealed = new Set<string>();
    let cursor: string | null | undefined;
    do {
      const query = { backupAgent: voter, status: "disputed", limit: 200, ...(cursor && { cursor }) };
      const page = await call(session, "GET /v1/votes", { query });
      for (const { contractId, vote } of page.data) if (vote === null) sealed.add(contractId);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return [...sealed];
  }

  /** Opens one vote if it is due. With a node, the chain says whether it is; otherwise the service's event log does. */
  async function openOne(id: string, given?: Hex): Promise<boolean> {
    const query = { contractId: id, agent: voter, type: "vote.sealed,deadline.approaching" };
    const { data: events } = await call(session, "GET /v1/events", { query });
    const commitment = events.findLast(({ type }) => type === "vote.sealed")?.data.commitment as Hex;
    const isAnnounced = events.some(({ data }) => data.deadline === "openingDeadline");
    if (session.node === undefined && !isAnnounced) return false;
    const salt = given ?? (await voteSalt(signer, ballotOf(id)));
    const words = findVotes(commitment, { ...ballotOf(id), salt });
    if (words === null)
      throw new Error(`This salt does not open the vote on ${id}; pass the one of the vote`);
    if (session.node !== undefined) {
      const data = encodeCall("openVote(address,uint24,bytes32)", voter, packOutcomes(words), salt);
      const { requesterOf } = await import("./chain-check.js");
      const rpc = requesterOf(session.node);
      const isDue = await rpc("eth_call", [{ to: id, data }, "latest"]).then(
        () => true,
        () => false,
      );
      if (!isDue) return false;
    }
    const body = { votes: entriesOf(words), salt };
    try {
      await call(session, "POST /v1/contracts/{id}/votes/open", { path: { id }, body });
      return true;
    } catch (error) {
      // Not yet, or the voter's other program opened it.
      if (error instanceof ServiceError && error.code === "conflict") return false;
      throw error;
    }
  }

  return {
    /**
     * Votes on a disputed contract, one outcome per criterion, sealed even to the service. Open it with `openVotes` within
     * a day of the end of the voting window: a vote that is not opened forfeits its bond.
     */
    async vote(
      id: string,
      words: readonly Outcome[],
      { entrust = false, salt }: VoteOptions = {},
    ): Promise<{ votes: Vote[]; salt: Hex }> {
      const random = () => toHex(crypto.getRandomValues(new Uint8Array(32)));
      const sealing = salt ?? (entrust ? random() : await voteSalt(signer, ballotOf(id)));
      const commitment = voteCommitment({ ...ballotOf(id), votes: packOutcomes(words), salt: sealing });
      const expect = toEscrow(id, ({ price, parameters, criteriaCount }) => {
        // A commitment to another number of outcomes could never be opened.
        if (words.length !== criteriaCount)
          throw new RangeError(`${words.length} outcomes for ${criteriaCount} criteria`);
        return { amount: voteDeposit(price, criteriaCount, parameters) };
      });
      return pay(session, "POST /v1/contracts/{id}/votes", {
        path: { id },
        body: JSON.stringify(entrust ? { votes: entriesOf(words), salt: sealing } : { commitment }),
        // The bond then signs the votes: no one can carry it with others.
        nonce: bondNonce(commitment),
        expect,
        open: ({ data }, headers) => ({
          votes: data.map((one) => ({ ...one, vote: words[one.criterionIndex] ?? null })),
          salt: (headers.get("vote-salt") as Hex | null) ?? sealing,
        }),
      });
    },

    /**
     * Opens each sealed vote of this agent as soon as no one else can vote. By default waits until none is left, also
     * while the service does not respond. Without its own node (`connect`), it takes the service's word that voting has
     * ended. Returns the contracts.
     */
    async openVotes({ wait = true, intervalMs = INTERVAL_MS, signal, salts, onOpened }: OpenOptions = {}) {
      const opened: string[] = [];
      for (;;) {
        const failures: unknown[] = [];
        let isWaiting = false;
        const isTemporary = (error: unknown): boolean => {
          if (!wait || !isOutage(error)) return false;
          isWaiting = true;
          return true;
        };
        const left = await sealedVotes().catch((error) => {
          if (isTemporary(error)) return [];
          throw error;
        });
        for (const id of left.filter((one) => !opened.includes(one))) {
          try {
            if (await openOne(id, salts?.[id])) {
              opened.push(id);
              onOpened?.(id);
            } else isWaiting = true;
          } catch (error) {
            // One vote must not keep the others closed.
            if (!isTemporary(error)) failures.push(error);
          }
        }
        if (!wait || !isWaiting) {
          if (failures.length > 0) throw failures[0];
          return opened;
        }
        await pause(intervalMs, signal);
      }
    },
  };
}

const entriesOf = (words: readonly Outcome[]) =>
  words.map((vote, criterionIndex) => ({ criterionIndex, vote }));

/** The salt of the signer's vote on a contract. Throws RefusedToSign if its wallet signs differently each time. */
export function voteSalt(
  signer: Pick<Signer, "signMessage">,
  { chainId, escrow }: { chainId: number; escrow: Address },
): Promise<Hex> {
  return secretOf(signer, { purpose: "Seal my vote on a Working Contract.", chainId, contract: escrow });
}
