/** The rule that derives a status from stored facts and time. EscrowState._statusOf and the SQL filter match it. */
import { released } from "./ledger.js";
import { allMet, type OutcomeTally, tallyOutcomes } from "./outcomes.js";
import type { Phase } from "./types.js";

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
export type Status = (typeof STATUSES)[number];

/** Groups for list filters; every status belongs to exactly one (docs/rules.md 50, 56). */
export const STATUS_GROUPS = {
  open: ["created"],
  active: ["matched", "under-review", "disputed", "resolved"],
  closed: [
    "settled-all-met",
    "settled-none-met",
    "settled-partial",
    "cancelled-unmatched",
    "cancelled-by-initiator",
    "cancelled-withdrawn",
    "cancelled-absent",
  ],
} as const satisfies Record<string, readonly Status[]>;
export type StatusGroup = keyof typeof STATUS_GROUPS;

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

/** Returns the status at `now`. A deadline has passed once `now` equals it. */
export function statusOf(facts: StatusFacts, now: number): Status {
  switch (facts.phase) {
    case "created":
      return now < facts.matchDeadline ? "created" : "cancelled-unmatched";
    case "matched":
      return now < facts.deliveryDeadline ? "matched" : "cancelled-absent";
    case "delivered":
      return now < facts.reviewDeadline ? "under-review" : resolvedStatus(facts, now);
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

/**
 * Returns the packed outcomes in effect at `now`, 0 while undecided. They are the stored ones (computed at delivery,
 * set by approval, or voted), or all met once the review deadline has passed without a dispute.
 */
export function effectiveOutcomes(facts: StatusFacts, now: number): number {
  const acceptedByTimeOut =
    facts.phase === "delivered" && !facts.computedCriteria && now >= facts.reviewDeadline;
  return acceptedByTimeOut ? allMet(facts.criteriaCount) : facts.outcomes;
}

/**
 * Counts the outcomes that determine the payout at `now`. Without a vote, an unclear computed criterion pays as met,
 * because the Client accepted it; only a vote splits its share (docs/rules.md 33).
 */
export function payingTally(facts: StatusFacts, now: number): OutcomeTally {
  const { met, notMet, unclear } = tallyOutcomes(effectiveOutcomes(facts, now), facts.criteriaCount);
  return facts.phase === "tallied" ? { met, notMet, unclear } : { met: met + unclear, notMet, unclear: 0 };
}

/** Returns when the Working Contract ended, in seconds, or null if it has not. Settlement comes later. */
export function endedAt(facts: StatusFacts & { endedAt: number | null }, now: number): number | null {
  switch (facts.phase) {
    case "created":
      return now < facts.matchDeadline ? null : facts.matchDeadline;
    case "matched":
      return now < facts.deliveryDeadline ? null : facts.deliveryDeadline;
    case "delivered":
      return now < facts.reviewDeadline ? null : facts.reviewDeadline;
    case "disputed":
      return null;
    default:
      return facts.endedAt;
  }
}

/** Settled statuses are named by how the price was divided. */
function resolvedStatus(facts: StatusFacts, now: number): Status {
  if (!facts.settled) return "resolved";
  const gross = released(facts.price, payingTally(facts, now));
  if (gross === facts.price) return "settled-all-met";
  return gross === 0n ? "settled-none-met" : "settled-partial";
}
