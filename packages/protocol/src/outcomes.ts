/** Outcomes of acceptance criteria, and votes on them: words in the API, two bits each on chain, criterion 0 lowest. */
import { encodeWords, keccak256 } from "./hex.js";
import type { Address, Hex } from "./types.js";

/** The words of the API. The two bits on chain are the position in this list plus one; zero is undecided. */
export const OUTCOMES = ["met", "not met", "unclear"] as const;
/** A vote on an acceptance criterion, or the result of the votes on it. */
export type Outcome = (typeof OUTCOMES)[number];

/** Acceptance criteria of one Working Contract (docs/rules.md 23). */
export const MAX_CRITERIA = 10;

/** Number of criteria of one Working Contract, by outcome. */
export interface OutcomeTally {
  met: number;
  notMet: number;
  unclear: number;
}

/** Packs one outcome per criterion. Throws if there are more than {@link MAX_CRITERIA}. */
export function packOutcomes(outcomes: readonly Outcome[]): number {
  if (outcomes.length > MAX_CRITERIA)
    throw new RangeError(`${outcomes.length} criteria exceed the maximum of ${MAX_CRITERIA}`);
  return outcomes.reduce((packed, outcome, i) => packed | ((OUTCOMES.indexOf(outcome) + 1) << (2 * i)), 0);
}

/** Returns one outcome per criterion, or null while undecided (0). Throws unless `packed` has `criteriaCount` outcomes. */
export function unpackOutcomes(packed: number, criteriaCount: number): Outcome[] | null {
  if (packed === 0) return null;
  if (packed >> (2 * criteriaCount) !== 0)
    throw new RangeError(`Outcomes ${packed} exceed ${criteriaCount} criteria`);
  return Array.from({ length: criteriaCount }, (_, i) => {
    const outcome = outcomeAt(packed, i);
    if (outcome === null) throw new RangeError(`Outcomes ${packed} are missing criterion ${i}`);
    return outcome;
  });
}

/** Returns the outcome of one criterion, or null if it has none. */
export const outcomeAt = (packed: number, criterion: number): Outcome | null =>
  OUTCOMES[((packed >> (2 * criterion)) & 3) - 1] ?? null;

export const allMet = (criteriaCount: number): number => 0x555555 & ((1 << (2 * criteriaCount)) - 1);

/** Counts outcomes. A criterion without an outcome counts as unclear, as in the escrow. */
export function tallyOutcomes(packed: number, criteriaCount: number): OutcomeTally {
  return countOutcomes(Array.from({ length: criteriaCount }, (_, i) => outcomeAt(packed, i) ?? "unclear"));
}

/** Counts each outcome. A null, such as a vote that was never opened, counts as none of them. */
export function countOutcomes(outcomes: readonly (Outcome | null)[]): OutcomeTally {
  const count = (wanted: Outcome): number => outcomes.filter((outcome) => outcome === wanted).length;
  return { met: count("met"), notMet: count("not met"), unclear: count("unclear") };
}

/** The hash with which EscrowJury seals packed outcomes, bound to chain, escrow and voter; the salt hides them. */
export function voteCommitment(ballot: {
  chainId: number;
  escrow: Address;
  voter: Address;
  votes: number;
  salt: Hex;
}): Hex {
  const { chainId, escrow, voter, votes, salt } = ballot;
  return keccak256(encodeWords(chainId, escrow, voter, votes, salt));
}

/** The nonce with which the payment of a bond signs the votes, too. No one can find a commitment for a random nonce. */
export const bondNonce = (commitment: Hex): Hex => keccak256(commitment);

/** Whether an escrow takes the word for a commitment; smaller words are opened votes and their flags. */
export const isCommitment = (word: Hex): boolean => BigInt(word) >= 1n << 27n;

/** The votes behind a commitment with a known salt: fewer than 90,000 are possible. Null if the salt is another one. */
export function findVotes(
  commitment: Hex,
  ballot: Omit<Parameters<typeof voteCommitment>[0], "votes">,
): Outcome[] | null {
  for (let count = 1; count <= MAX_CRITERIA; count++) {
    for (let i = 0; i < OUTCOMES.length ** count; i++) {
      const outcomes = Array.from(
        { length: count },
        (_, criterion) => OUTCOMES[Math.floor(i / OUTCOMES.length ** criterion) % OUTCOMES.length] as Outcome,
      );
      if (voteCommitment({ ...ballot, votes: packOutcomes(outcomes) }) === commitment) return outcomes;
    }
  }
  return null;
}
