/** Why an operation failed, in one word, and whether waiting can help. */
import type { Hex } from "viem";
import { decodeRevert } from "../chain/errors.js";

export type Verdict =
  /** No later try can succeed; what the payer signed was never sent. */
  | { verdict: "reject"; reason: string; data: Hex }
  /** The cause lies outside of the operation and can pass. */
  | { verdict: "hold"; reason: string; data: Hex };

/** Errors that time alone ends, met when the keeper's clock runs ahead of the chain's. */
const TOO_EARLY: ReadonlySet<string> = new Set([
  "VotingOpen",
  "TallyNotDue",
  "PayoutHeld",
  "NoDraw",
  "SurplusNotReturnable",
]);
/** The reason of what waits until the stablecoin moves again. */
export const TOKEN_PAUSED = "TokenPaused";
/** Tries of a keeper's operation that is too early, some four minutes: then the keeper brings it again. */
const EARLY_TRIES = 8;
/** Tries of an operation that a reorganisation took back after its caller was told that it was applied: as long. */
export const ANSWERED_TRIES = 34;

/**
 * Times that an operation is judged again which failed on chain although its simulation succeeded: a reorganisation, or
 * somebody else's transaction, changed what it stands on.
 */
export const FAILED_TRIES = 2;

/** What an act within `withSurplus` that failed without a reason ends in. */
const WITHOUT_REASON = "FailedCall";

/** The Solidity error's name, or the relayer's own word for failures without one. */
export function failureReason(data: Hex, outOfGas: boolean): string {
  const name = data === "0x" ? WITHOUT_REASON : (decodeRevert(data)?.name ?? "UnknownError");
  if (name !== WITHOUT_REASON) return name;
  return outOfGas ? "OutOfGas" : "Reverted";
}

export function judgeFailure({
  reason,
  data,
  fromKeeper,
  tries,
  answered,
  tokenPaused,
}: {
  reason: string;
  data: Hex;
  fromKeeper: boolean;
  tries: number;
  /** Whether its caller was told that it was applied: what it stands on may be on its way again too. */
  answered: boolean;
  /** Whether the stablecoin refuses all transfers at the moment. */
  tokenPaused: boolean;
}): Verdict {
  if (tokenPaused) return { verdict: "hold", reason: TOKEN_PAUSED, data };
  const isEarly = fromKeeper && TOO_EARLY.has(reason) && tries < EARLY_TRIES;
  if (isEarly || (answered && tries < ANSWERED_TRIES)) return { verdict: "hold", reason, data };
  return { verdict: "reject", reason, data };
}

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 5 * 60_000;
const LAST_ANSWERED_RETRY_MS = 8_000;

/** Milliseconds until the next try; fewer where others wait behind what a caller was told. */
export function retryDelay(tries: number, { answered = false } = {}): number {
  return Math.min(
    FIRST_RETRY_MS * 2 ** Math.min(tries, 20),
    answered ? LAST_ANSWERED_RETRY_MS : LAST_RETRY_MS,
  );
}
