/** POST /v1/contracts/{id}/votes: the bond pays for a ballot that the service or the voter seals and opens. */
import { randomBytes } from "node:crypto";
import { tokenUnits, voteDeposit } from "@working-contracts/protocol/ledger";
import { LIMITS } from "@working-contracts/protocol/limits";
import { bondNonce, type Outcome, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import {
  isVotingClosed,
  openingEndsAt,
  seatsOpenAt,
  votingClosesAt,
} from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq, sql } from "drizzle-orm";
import { indexedTime, requireIndex, type VoterFacts, vote } from "../../db/onchain.js";
import { prepare } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, forbidden, invalidField } from "../../errors.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { AcceptedPayment, PaidAction, StoredResponse, Success } from "../../payments/relayed-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { policyFor } from "../../relayer/limits.js";
import { openVoteOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { ensureDelegation, isDelegable } from "../agents/delegation.js";
import {
  type ActionRequest,
  loadContractForAction,
  performUnpaidCall,
  requireStatus,
  roleOf,
} from "../contracts/actions.js";
import { type ContractRow, parametersOf } from "../contracts/view.js";
import { criterion, shownVotes, toVote, type VoteRow } from "./view.js";

export interface BallotEntry {
  criterionIndex: number;
  vote: Outcome;
}

interface VoteCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  /** Votes for the service to seal, or the commitment to votes that it must not see. */
  ballot: { votes: readonly BallotEntry[]; salt?: Hex | undefined } | { commitment: Hex };
}

/** Quotes the bond for all criteria, or seals the ballot. With the salt in `Vote-Salt` the voter can also open it. */
export async function submitVotes(deps: Deps, call: VoteCall): Promise<StoredResponse> {
  const { id, caller } = call;
  return performPaidCall(deps, {
    ...call,
    name: `vote ${id}`,
    path: `/v1/contracts/${id}/votes`,
    check: () => checkVote(deps, call),
    beforeQuote: () => requireSignable(deps, call),
    beforeOperation: (action, { authorization }) => storeVote(deps, action, { caller, authorization }),
    respond: () => viewBallot(deps, id, caller),
  });
}

/** `entrusted`: the votes that the service is to open. */
type VoteAction = PaidAction & { commitment: Hex; entrusted?: { votes: number; salt: Hex } };

async function checkVote(deps: Deps, { id, caller, ballot }: VoteCall): Promise<VoteAction> {
  const row = await loadContractForAction(deps, id, caller);
  const { price, criteriaCount } = row.chain;
  let sealed: Pick<VoteAction, "commitment" | "entrusted">;
  if ("commitment" in ballot) sealed = ballot;
  else {
    const votes = packBallot(ballot.votes, criteriaCount);
    const salt = ballot.salt ?? (`0x${randomBytes(32).toString("hex")}` as const);
    const { chainId } = deps.deployment;
    const commitment = voteCommitment({ chainId, escrow: id, voter: caller, votes, salt });
    sealed = { commitment, entrusted: { votes, salt } };
  }
  requireVoter(row, caller, { voter: row.voter, now: deps.clock.now() });

  return {
    kind: "vote",
    payTo: id,
    amount: voteDeposit(price, criteriaCount, parametersOf(row)),
    description: `Backup Agent Bond for ${criteriaCount} criteria of the contract "${row.terms.title}"`,
    lastSecond: votingClosesAt(row.chain) - 1,
    ...sealed,
    alreadyDone: () => conflict("You have already voted on this contract, with another payment."),
  };
}

/** No payment can sign votes whose salt its payer does not know: throws 403 unless the voter delegated them. */
async function requireSignable(deps: Deps, { caller, ballot }: VoteCall): Promise<void> {
  const needsDelegation = "votes" in ballot && ballot.salt === undefined;
  if (needsDelegation && !(await isDelegable(deps, caller, "vote"))) throw votesNotDelegated();
}

/** Stores the votes before their commitment can be on chain: without them, the bond is lost (docs/decisions.md, "Voting rights"). */
async function storeVote(
  deps: Deps,
  { commitment, entrusted, payTo: id }: VoteAction,
  { caller, authorization }: { caller: Address; authorization: AcceptedPayment["authorization"] },
): Promise<void> {
  const { nonce, validAfter } = authorization;
  const gasPolicy = policyFor("vote", deps.config.gasPolicy);
  if (nonce !== bondNonce(commitment)) {
    if (validAfter === 1n) throw paidForAnother();
    if (!(await ensureDelegation(deps, caller, "vote", gasPolicy))) throw votesNotDelegated();
  }
  if (entrusted !== undefined) await entrustedVoteInsert(deps.db, { id, caller, commitment, ...entrusted });
}

const entrustedVoteInsert = prepare(
  "entrusted_vote_insert",
  sql`
    insert into app.entrusted_vote (contract_id, backup_agent, commitment, votes, salt)
    values (${sql.placeholder("id")}, ${sql.placeholder("caller")}, ${sql.placeholder("commitment")},
      ${sql.placeholder("votes")}::int, ${sql.placeholder("salt")})
    on conflict do nothing`,
);

function paidForAnother(): AppError {
  return conflict(
    "The payment does not match these votes: with `validAfter` 1, its nonce must be keccak256 of their commitment. Sign another payment, with that nonce or with `validAfter` 0.",
  );
}

function votesNotDelegated(): AppError {
  return forbidden(
    "The service is not authorized to vote for your address: your sign-in did not delegate `vote`, you never signed in, or you revoked the delegation. Send a commitment (or your votes with their salt) and use keccak256 of the commitment as the payment's nonce; or sign in again and delegate `vote`.",
  );
}

const ownBallot = prepare<VoteRow>(
  "own_ballot",
  sql`${shownVotes(
    and(eq(vote.contractId, sql.placeholder("id")), eq(vote.backupAgent, sql.placeholder("caller"))),
  )} order by ${criterion}`,
);

/** The caller's ballot on chain: of several concurrent attempts, the one whose commitment was accepted. */
async function viewBallot({ db }: Deps, id: Address, caller: Address): Promise<Success> {
  const rows = await ownBallot(db, { id, caller });
  const salt = rows[0]?.salt;
  return { data: rows.map(toVote), headers: salt ? { "Vote-Salt": salt } : {} };
}

/** Packs exactly one entry per criterion, in any order. Throws `invalid_request` naming every invalid entry. */
export function packBallot(entries: readonly BallotEntry[], criteriaCount: number): number {
  const details: { path: string; message: string }[] = [];
  const ballot = new Array<Outcome | undefined>(criteriaCount).fill(undefined);
  for (const [i, { criterionIndex, vote }] of entries.entries()) {
    const path = `votes.${i}.criterionIndex`;
    if (criterionIndex >= criteriaCount) {
      details.push({ path, message: `must be below ${criteriaCount}, the number of criteria` });
    } else if (ballot[criterionIndex] !== undefined) {
      details.push({ path, message: `must not name criterion ${criterionIndex} a second time` });
    } else ballot[criterionIndex] = vote;
  }
  for (const [i, vote] of ballot.entries()) {
    if (vote === undefined) details.push({ path: "votes", message: `must have an entry for criterion ${i}` });
  }
  const [first] = details;
  if (first === undefined) return packOutcomes(ballot as Outcome[]);
  throw new AppError("invalid_request", {
    message: `${first.path}: ${first.message}. Send exactly one entry for each of the ${criteriaCount} criteria.`,
    details,
  });
}

/** Throws 403 for an agent that may not vote on this contract, then 409 if it is too early or too late, or if the panel is full. */
export function requireVoter(
  row: ContractRow,
  agent: Address,
  { voter, now }: { voter: VoterFacts; now: number },
): void {
  if (roleOf(row, agent) !== null) throw forbidden("The contract's client and worker cannot vote on it.");
  // An agent that has voted was eligible then, even if its stake has changed since.
  if (row.chain.disputedAt !== null && !voter.voted) {
    requireStake(row, row.chain.matchedAt ?? 0n, voter.stake);
    requireSeat(row, { voter, now });
  }
  requireStatus(row, "disputed", now);
  if (voter.voted) throw conflict("You have already voted on this contract; a ballot cannot be changed.");
  const closesAt = votingClosesAt(row.chain);
  if (now >= closesAt) throw conflict(`The voting window closed at ${isoTime(closesAt)}.`);
  const seats = row.chain.baRecruitCount || LIMITS.votersPerContract;
  if (row.chain.sealedVotes >= seats) throw conflict(`The panel is full: all ${seats} seats are taken.`);
}

function requireStake({ chain }: ContractRow, matchedAt: bigint, staked: VoterFacts["stake"]): void {
  const required = chain.baEligibilityStake;
  const eligible =
    staked !== null &&
    BigInt(staked.amount) > 0n &&
    BigInt(staked.amount) >= tokenUnits(required) &&
    BigInt(staked.since) < matchedAt &&
    (staked.releasableAt === null ||
      matchedAt <= BigInt(staked.releasableAt) - BigInt(LIMITS.unstakingDelay));
  if (eligible) return;
  throw forbidden(
    `To vote on this contract you need ${required} protocol tokens staked before ${isoTime(matchedAt)}, when the parties were matched, and not in withdrawal at that time.`,
  );
}

/** In the first half of the window only drawn agents can vote; after it the remaining seats are open to all. */
function requireSeat({ chain }: ContractRow, { voter, now }: { voter: VoterFacts; now: number }): void {
  const openToAllAt = seatsOpenAt(chain);
  if (chain.baRecruitCount === 0 || voter.drawn || now >= openToAllAt) return;
  if (!chain.drawn) throw forbidden("The panel has not been drawn yet. Try again after `contract.drawn`.");
  throw forbidden(
    `You were not drawn for this panel. Seats that are still empty at ${isoTime(openToAllAt)} are open to every eligible Backup Agent.`,
  );
}

type OpenVoteCall = ActionRequest & { id: Address; votes: readonly BallotEntry[]; salt: Hex };

/** Opens the caller's ballot on chain, once no one else can vote. */
export function openVote(deps: Deps, call: OpenVoteCall): Promise<StoredResponse> {
  const { id, caller, votes, salt } = call;
  const { db, deployment } = deps;
  return performUnpaidCall(deps, {
    ...call,
    name: `open-vote ${id}`,
    subject: { kind: "open-vote", onceKey: `open-vote:${id}:${caller}` },
    store: async (requestHash) => {
      const row = await loadContractForAction(deps, id);
      const packed = packBallot(votes, row.chain.criteriaCount);
      const [ballot] = await db
        // Our clock can be ahead of blocks in which others can still vote.
        .select({ commitment: vote.commitment, votes: vote.votes, now: indexedTime })
        .from(vote)
        .where(and(eq(vote.contractId, id), eq(vote.backupAgent, caller)));
      // The index can have restarted since the row was read.
      if (!ballot?.now) await requireIndex(deps);
      if (ballot === undefined) throw forbidden("You have not voted on this contract.");
      requireOpeningPeriod(row, Number(ballot.now));
      if (ballot.votes !== null) throw conflict("Your vote is already open.");
      const sealed = { chainId: deployment.chainId, escrow: id, voter: caller, votes: packed, salt };
      if (voteCommitment(sealed) !== ballot.commitment) {
        const message = "does not open your sealed vote with these votes";
        throw invalidField("salt", message, `salt: ${message}`);
      }
      const notAfter = openingEndsAt(row.chain) - 1;
      const opening = { escrow: id, caller, backupAgent: caller, votes: packed, salt, requestHash, notAfter };
      return enqueue(db, openVoteOperation(opening));
    },
    respond: async () => ({ data: (await viewBallot(deps, id, caller)).data }),
  });
}

function requireOpeningPeriod(row: ContractRow, now: number): void {
  requireStatus(row, "disputed", now);
  if (!isVotingClosed(row.chain, now)) {
    throw conflict(
      `Others can still vote, until ${isoTime(votingClosesAt(row.chain))} at the latest. Keep your votes to yourself until then.`,
    );
  }
  const endsAt = openingEndsAt(row.chain);
  if (now >= endsAt) throw conflict(`The period for opening votes ended at ${isoTime(endsAt)}.`);
}
