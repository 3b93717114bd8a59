/** How a Working Contract ended, and the payments that follow: the rules behind the settlement resource. */
import { absentLegs, type Leg, resolvedLegs, unmatchedLegs, withdrawnLegs } from "./ledger.js";
import { payingTally, type StatusFacts, statusOf } from "./status.js";
import type { Parameters } from "./types.js";

/** How a Working Contract ended: docs/rules.md 50, and one word for each `cancelled-*` status. */
export type Ending =
  | "approved"
  | "review-timeout"
  | "dispute"
  | "absent"
  | "withdrawn"
  | "declined"
  | "cancelled"
  | "unmatched";

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
      return now < facts.matchDeadline ? null : "unmatched";
    case "matched":
      return now < facts.deliveryDeadline ? null : "absent";
    case "delivered":
      return now < facts.reviewDeadline ? null : "review-timeout";
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
  switch (statusOf(facts, now)) {
    case "created":
    case "matched":
    case "under-review":
    case "disputed":
      return null;
    case "cancelled-absent":
      return absentLegs(price, parameters);
    case "cancelled-withdrawn":
      return withdrawnLegs(price, parameters);
    case "cancelled-unmatched":
    case "cancelled-by-initiator":
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
