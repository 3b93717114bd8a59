/** One escrow as packages/protocol sees it: facts, books and the payouts that its settlement owes. */

import {
  depositsOf,
  disputeBond,
  juryDues,
  type Payout,
  payoutOf,
  voteDeposit,
} from "@working-contracts/protocol/ledger";
import {
  endedAt,
  type SettlementFacts,
  type Status,
  settlementLegs,
  statusOf,
  votingClosesAt,
} from "@working-contracts/protocol/status";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import type { PrivateKeyAccount } from "viem";

/** How long after the window a sealed vote can still be opened (docs/rules.md 48). */
const OPENING_SECONDS = 86_400;

export interface Ballot {
  voter: PrivateKeyAccount;
  votes: number;
  salt: Hex;
  opened: boolean;
  claimed: boolean;
}

export interface Life {
  id: Address;
  terms: EscrowTerms;
  initiator: PrivateKeyAccount;
  /** The party that will match, or the named party that will not. */
  counterparty: PrivateKeyAccount;
  /** How likely someone acts on it at a step. Slow ones run into their deadlines. */
  activity: number;
  matched: boolean;
  facts: SettlementFacts & { endedAt: number | null };
  disputedAt: bigint | null;
  ballots: Ballot[];
}

export function lifeStatus(life: Life, now: number): Status {
  return statusOf(life.facts, now);
}

export function clientOf(life: Life): PrivateKeyAccount | null {
  if (!life.terms.workerInitiated) return life.initiator;
  return life.matched ? life.counterparty : null;
}

export function workerOf(life: Life): PrivateKeyAccount | null {
  if (life.terms.workerInitiated) return life.initiator;
  return life.matched ? life.counterparty : null;
}

export function duesOf(life: Life): ReturnType<typeof juryDues> {
  const opened = life.ballots.map((ballot) => (ballot.opened ? ballot.votes : null));
  return juryDues(opened, life.terms);
}

/** The facts on which the time limits of voting depend, once disputed. */
export function disputeOf({ terms, disputedAt, ballots }: Life) {
  return { ...terms.parameters, disputedAt, sealedVotes: ballots.length };
}

export function openableUntil(life: Life): number {
  return votingClosesAt(disputeOf(life)) + OPENING_SECONDS;
}

/** The time from which money can leave, or null while the Working Contract has not ended. */
export function payableAt(life: Life, now: number): number | null {
  const ended = endedAt(life.facts, now);
  return ended === null ? null : ended + life.terms.parameters.payoutHold;
}

export function payoutAt(life: Life, now: number): Payout | null {
  const juryLeftover = life.facts.phase === "tallied" ? duesOf(life).leftover : 0n;
  const legs = settlementLegs({ ...life.facts, juryLeftover }, now);
  return legs && payoutOf(legs);
}

/** The amounts that the escrow's books must hold. */
export function bookedOf(life: Life): bigint {
  const { price, criteriaCount, parameters } = life.terms;
  const { initiator, acceptor } = depositsOf(life.terms);
  const bond = life.disputedAt === null ? 0n : disputeBond(price, parameters);
  const principal = life.matched ? initiator + acceptor + bond : initiator;
  const posted = BigInt(life.ballots.length) * voteDeposit(price, criteriaCount, parameters);
  const { dues, leftover } = duesOf(life);
  const claimed = dues.reduce((sum, due, i) => sum + (life.ballots[i]?.claimed ? due.amount : 0n), 0n);
  return life.facts.settled
    ? posted - claimed - (life.facts.phase === "tallied" ? leftover : 0n)
    : principal + posted - claimed;
}
