/** POST /v1/contracts/{id}/votes/open: a voter opens the ballot that it sealed itself. */

import { LIMITS } from "@working-contracts/protocol/limits";
import { voteCommitment } from "@working-contracts/protocol/outcomes";
import { isVotingClosed, votingClosesAt } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq } from "drizzle-orm";
import { vote } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AppError, invalidField } from "../../errors.js";
import type { StoredResponse } from "../../payments/relayed-call.js";
import { openVoteOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { loadContractForAction, performAction, requireStatus } from "../contracts/actions.js";
import type { ContractRow } from "../contracts/view.js";
import { type BallotEntry, packBallot, presentBallot } from "./submit-votes.js";

interface OpenVoteCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  votes: readonly BallotEntry[];
  salt: Hex;
}

/**
 * Opens the caller's ballot on chain. Refuses with 404, 403 (the caller has not voted), 400 (not what was sealed) and
 * 409: as long as others can vote, after the opening period, and if the ballot is open.
 */
export function openVote(deps: Deps, call: OpenVoteCall): Promise<StoredResponse> {
  const { id, caller, rawBody, votes, salt } = call;
  const { db, clock, deployment } = deps;
  return performAction(deps, {
    action: `open-vote ${id}`,
    subject: { kind: "open-vote", onceKey: `open-vote:${id}:${caller}` },
    caller,
    rawBody,
    store: async (requestHash) => {
      const row = await loadContractForAction(db, id);
      const [ballot] = await db
        .select({ commitment: vote.commitment, votes: vote.votes })
        .from(vote)
        .where(and(eq(vote.contractId, id), eq(vote.backupAgent, caller)));
      if (ballot === undefined)
        throw new AppError("forbidden", { message: "You have not voted on this contract." });
      requireOpeningPeriod(row, clock.now());
      if (ballot.votes !== null) throw new AppError("conflict", { message: "Your vote is already open." });
      const packed = packBallot(votes, row.chain.criteriaCount);
      const sealed = { chainId: deployment.chainId, escrow: id, voter: caller, votes: packed, salt };
      if (voteCommitment(sealed) !== ballot.commitment) {
        const message = "does not open your sealed vote with these votes";
        throw invalidField("salt", message, `salt: ${message}`);
      }
      const notAfter = openingEndsAt(row) - 1;
      const opening = { escrow: id, caller, backupAgent: caller, votes: packed, salt, requestHash, notAfter };
      return enqueue(db, openVoteOperation(opening));
    },
    respond: async () => ({ data: (await presentBallot(deps, id, caller)).data }),
  });
}

const openingEndsAt = ({ chain }: ContractRow): number => votingClosesAt(chain) + LIMITS.voteOpeningWindow;

function requireOpeningPeriod(row: ContractRow, now: number): void {
  requireStatus(row, "disputed", now);
  if (!isVotingClosed(row.chain, now)) {
    throw new AppError("conflict", {
      message: `Others can still vote, until ${isoTime(votingClosesAt(row.chain))} at the latest. Keep your votes to yourself until then.`,
    });
  }
  if (now >= openingEndsAt(row)) {
    throw new AppError("conflict", {
      message: `Votes could be opened until ${isoTime(openingEndsAt(row))}.`,
    });
  }
}
