/** A Backup Agent's votes on all criteria of one contract, as posted and as one packed word. */

import { type Outcome, packOutcomes } from "@working-contracts/protocol/outcomes";
import { AppError } from "../../errors.js";

export interface BallotEntry {
  criterionIndex: number;
  vote: Outcome;
}

/** Packs exactly one entry per criterion, in any order. Throws `invalid_request` naming every invalid entry. */
export function packBallot(entries: readonly BallotEntry[], criteriaCount: number): number {
  const details: { path: string; message: string }[] = [];
  const votes = new Map<number, Outcome>();
  for (const [i, { criterionIndex, vote }] of entries.entries()) {
    const path = `votes.${i}.criterionIndex`;
    if (criterionIndex >= criteriaCount) {
      details.push({ path, message: `must be below ${criteriaCount}, the number of criteria` });
    } else if (votes.has(criterionIndex)) {
      details.push({ path, message: `must not name criterion ${criterionIndex} a second time` });
    } else votes.set(criterionIndex, vote);
  }
  const ballot: Outcome[] = [];
  for (let i = 0; i < criteriaCount; i++) {
    const vote = votes.get(i);
    if (vote === undefined) details.push({ path: "votes", message: `must have an entry for criterion ${i}` });
    else ballot.push(vote);
  }
  const [first] = details;
  if (first === undefined) return packOutcomes(ballot);
  throw new AppError("invalid_request", {
    message: `${first.path}: ${first.message}. Send exactly one entry for each of the ${criteriaCount} criteria.`,
    details,
  });
}
