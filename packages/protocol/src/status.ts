/** The rule that derives a status from stored facts and time. EscrowState._statusOf and the SQL filter match it. */
import {
  absentLegs,
  juryDues,
  type Leg,
  type LegName,
  type Payout,
  released,
  resolvedLegs,
  unmatchedLegs,
  withdrawnLegs,
} from "./ledger.js";
import { LIMITS } from "./limits.js";
import { allMet, type OutcomeTally, tallyOutcomes } from "./outcomes.js";
import type { Parameters } from "./terms.js";
import type { Address, Hex, Phase } from "./types.js";

/** Status words of the API, in the order of the Solidity enum (which has `None` before them). */
export const STATUSES = [
  "created",
  "matched",
  "under-review",
  "disputed",
  "resolved",
  "settled-all-met",
  "settled-none-met",
  "settled-partial",
  "cancelled-unmatched",
  "cancelled-by-initiator",
  "cancelled-withdrawn",
  "cancelled-absent",
] as const;
/** Holds at one point in time: {@link statusOf} derives it from the stored phase and the deadlines. */
export type Status = (typeof STATUSES)[number];

/** Groups for list filters; every status belongs to exactly one (docs/rules.md 50, 56). */
export const STATUS_GROUPS = {
  open: ["created"],
  active: ["matched", "under-review", "disputed", "resolved"],
  closed: STATUSES.filter((status) => /^(settled|cancelled)-/.test(status)),
} as const satisfies Record<string, readonly Status[]>;

/** Inputs of the status. Times are seconds since 1970. An escrow that was never paid (`none`) has no status. */
export interface StatusFacts {
  phase: Exclude<Phase, "none">;
  settled: boolean;
  /** Packed outcomes as stored; 0 while undecided. */
  outcomes: number;
  price: bigint;
  criteriaCount: number;
  computedCriteria: boolean;
  matchDeadline: number;
  deliveryDeadline: number;
  reviewDeadline: number;
}

/** A deadline has passed once `now` equals it. That of a settled escrow has, even if the clock is behind the facts. */
const isAhead = (deadline: number, { settled }: StatusFacts, now: number): boolean =>
  now < deadline && !settled;

export function statusOf(facts: StatusFacts, now: number): Status {
  switch (facts.phase) {
    case "created":
      return isAhead(facts.matchDeadline, facts, now) ? "created" : "cancelled-unmatched";
    case "matched":
      return isAhead(facts.deliveryDeadline, facts, now) ? "matched" : "cancelled-absent";
    case "delivered":
      return isAhead(facts.reviewDeadline, facts, now) ? "under-review" : resolvedStatus(facts, now);
    case "disputed":
      return "disputed";
    case "approved":
    case "tallied":
      return resolvedStatus(facts, now);
    case "declined":
      return "cancelled-unmatched";
    case "cancelled":
      return "cancelled-by-initiator";
    case "withdrawn":
      return "cancelled-withdrawn";
  }
}

/** Returns the packed outcomes at `now`, 0 while undecided: the stored ones, or all met if no one disputed in time. */
export function effectiveOutcomes(facts: StatusFacts, now: number): number {
  const acceptedByTimeOut =
    facts.phase === "delivered" && !facts.computedCriteria && !isAhead(facts.reviewDeadline, facts, now);
  return acceptedByTimeOut ? allMet(facts.criteriaCount) : facts.outcomes;
}

/** Counts the outcomes that pay at `now`. Without a vote, an unclear computed criterion pays as met (docs/rules.md 33). */
export function payingTally(facts: StatusFacts, now: number): OutcomeTally {
  const { met, notMet, unclear } = tallyOutcomes(effectiveOutcomes(facts, now), facts.criteriaCount);
  return facts.phase === "tallied" ? { met, notMet, unclear } : { met: met + unclear, notMet, unclear: 0 };
}

/** Returns when the Working Contract ended, in seconds, or null if it has not. Settlement comes later. */
export function endedAt(facts: StatusFacts & { endedAt: number | null }, now: number): number | null {
  const ending = endingOf(facts, now);
  if (ending === null) return null;
  const deadline = ENDING_DEADLINES[ending];
  return deadline === undefined ? facts.endedAt : facts[deadline];
}

interface Dispute {
  disputedAt: bigint | null;
  baVotingWindow: number;
}

/** Returns the first second in which votes are no longer accepted; meaningful once disputed. src/db/onchain.ts has the SQL. */
export function votingClosesAt({ disputedAt, baVotingWindow }: Dispute): number {
  return Number(disputedAt ?? 0n) + baVotingWindow;
}

/** Returns the first second in which sealed votes can no longer be opened. src/db/onchain.ts has the SQL. */
export const openingEndsAt = (dispute: Dispute): number => votingClosesAt(dispute) + LIMITS.voteOpeningWindow;

/** Returns the first second in which no complaint is accepted, whatever the status (docs/rules.md 53). */
export const complaintsCloseAt = (reviewDeadline: number): number => reviewDeadline + LIMITS.complaintWindow;

/** Whether votes can be opened: the window has passed, or every seat of the panel is taken. */
export function isVotingClosed(
  dispute: Dispute & { baRecruitCount: number; sealedVotes: number },
  now: number,
): boolean {
  const { baRecruitCount, sealedVotes } = dispute;
  return now >= votingClosesAt(dispute) || (baRecruitCount > 0 && sealedVotes === baRecruitCount);
}

/** Returns the first second in which seats that no drawn agent took are open to every eligible Backup Agent. */
export function seatsOpenAt({ disputedAt, baVotingWindow }: Dispute): number {
  return Number(disputedAt ?? 0n) + Math.floor(baVotingWindow / 2);
}

/** Settled statuses are named by how the price was divided. */
function resolvedStatus(facts: StatusFacts, now: number): Status {
  if (!facts.settled) return "resolved";
  const gross = released(facts.price, payingTally(facts, now));
  if (gross === facts.price) return "settled-all-met";
  return gross === 0n ? "settled-none-met" : "settled-partial";
}

/** How a Working Contract ended (docs/rules.md 50), and one word for each `cancelled-*` status. */
export const ENDINGS = [
  "approved",
  "review-timeout",
  "dispute",
  "absent",
  "withdrawn",
  "declined",
  "cancelled",
  "unmatched",
] as const;
type Ending = (typeof ENDINGS)[number];

/** The deadlines that end a contract when they pass. */
export const ENDING_DEADLINES: Partial<
  Record<Ending, "matchDeadline" | "deliveryDeadline" | "reviewDeadline">
> = { unmatched: "matchDeadline", absent: "deliveryDeadline", "review-timeout": "reviewDeadline" };

/** Inputs of {@link settlementLegs}. Amounts are in base units of the stablecoin. */
export interface SettlementFacts extends StatusFacts {
  workerInitiated: boolean;
  /** Slashed jury bonds that no voter receives (`juryDues` in ledger.ts). Counts only if the dispute was tallied. */
  juryLeftover: bigint;
  parameters: Parameters;
}

/** Returns how the Working Contract had ended by `now`, or null if it had not. */
export function endingOf(facts: StatusFacts, now: number): Ending | null {
  switch (facts.phase) {
    case "created":
      return isAhead(facts.matchDeadline, facts, now) ? null : "unmatched";
    case "matched":
      return isAhead(facts.deliveryDeadline, facts, now) ? null : "absent";
    case "delivered":
      return isAhead(facts.reviewDeadline, facts, now) ? null : "review-timeout";
    case "disputed":
      return null;
    case "tallied":
      return "dispute";
    default:
      return facts.phase;
  }
}

/** Returns every leg that settlement pays, or null if the Working Contract has not ended. Legs of zero are omitted. */
export function settlementLegs(facts: SettlementFacts, now: number): Leg[] | null {
  const { price, parameters } = facts;
  switch (endingOf(facts, now)) {
    case null:
      return null;
    case "absent":
      return absentLegs(price, parameters);
    case "withdrawn":
      return withdrawnLegs(price, parameters);
    case "unmatched":
    case "declined":
    case "cancelled":
      return unmatchedLegs(price, facts.workerInitiated, parameters);
    default:
      return resolvedLegs({
        price,
        tally: payingTally(facts, now),
        disputed: facts.phase === "tallied",
        juryLeftover: facts.phase === "tallied" ? facts.juryLeftover : 0n,
        parameters,
      });
  }
}

/** Facts of a settlement, with the ballots and the payments so far. Addresses are in lower case. */
interface PaymentFacts extends Omit<SettlementFacts, "juryLeftover"> {
  endedAt: number | null;
  payees: Record<keyof Payout, Address | null>;
  /** Transaction of the settlement. */
  settledBy: Hex | undefined;
  /** In the order in which their bonds were paid. */
  ballots: readonly {
    backupAgent: Address;
    /** Packed; null if never opened. */
    votes: number | null;
    claimed: boolean;
    /** Transaction of the first claim. */
    claimedBy: Hex | undefined;
  }[];
  /** Payees that the token refused to pay, until a later attempt succeeds. */
  refused: ReadonlySet<string>;
  /** Transaction that paid a payee what the token had refused to pay it before. */
  late: ReadonlyMap<string, Hex>;
}

/** A payment of a settlement. */
export interface DueLeg {
  name: LegName | "jury-payout";
  to: keyof Payout | "backup-agent";
  address: Address | null;
  amount: bigint;
  /** Whether the escrow counted it as paid, even if the token refused the transfer. */
  paid: boolean;
  /** `held` while the payout hold runs, `queued` if it is due but not on chain, or refused by the token so far. */
  state: "held" | "queued" | "confirmed";
  transactionHash: Hex | null;
}

/** How and when it had ended by `now`, until when payouts are held, and all payments; nulls and none if it had not. */
export function settlementOf(facts: PaymentFacts, now: number) {
  const { phase, settled, settledBy, payees, ballots, refused, late } = facts;
  const { payoutHold } = facts.parameters;
  const ended = endedAt(facts, now);
  const heldUntil = ended === null || payoutHold === 0 ? null : ended + payoutHold;
  const waiting = heldUntil !== null && now < heldUntil ? "held" : "queued";

  const packed = ballots.map(({ votes }) => votes);
  const jury = juryDues(packed, facts);
  const owed = settlementLegs({ ...facts, juryLeftover: jury.leftover }, now) ?? [];
  const toParties = owed.map(({ name, payee: to, amount }) => {
    return { name, to, address: payees[to], amount, paid: settled, paidBy: settledBy };
  });
  const toVoters = ballots
    .map(({ backupAgent: address, claimed: paid, claimedBy: paidBy }, i) => {
      const amount = jury.dues[i]?.amount ?? 0n;
      return { name: "jury-payout", to: "backup-agent", address, amount, paid, paidBy } as const;
    })
    .filter(({ amount }) => amount > 0n);
  const legs = phase === "tallied" ? [...toParties, ...toVoters] : toParties;

  return {
    ending: endingOf(facts, now),
    endedAt: ended,
    heldUntil,
    legs: legs.map(({ paidBy, ...leg }): DueLeg => {
      const payee = leg.address ?? "";
      if (!leg.paid) return { ...leg, state: waiting, transactionHash: null };
      if (refused.has(payee)) return { ...leg, state: "queued", transactionHash: null };
      return { ...leg, state: "confirmed", transactionHash: late.get(payee) ?? paidBy ?? null };
    }),
  };
}
