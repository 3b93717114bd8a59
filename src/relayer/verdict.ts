/** Names the reason an operation failed and decides whether a retry can help. */
import type { Hex } from "viem";
import { decodeRevert } from "../chain/errors.js";

export type Verdict =
  /** No retry can succeed. This try did not send the payer's signature. */
  | { verdict: "reject"; reason: string; data: Hex }
  /** The cause is outside the operation and can go away. */
  | { verdict: "hold"; reason: string; data: Hex };

/** Errors that only time resolves. They occur when the keeper's clock is ahead of the chain's. */
const TOO_EARLY: ReadonlySet<string> = new Set([
  "VotingOpen",
  "TallyNotDue",
  "PayoutHeld",
  "NoDraw",
  "SurplusNotReturnable",
]);
/** Hold reason while the stablecoin is paused. */
export const TOKEN_PAUSED = "TokenPaused";
/** Tries of a keeper's operation that is too early (about four minutes); after that the keeper enqueues a new one. */
const EARLY_TRIES = 8;
/** Tries of an operation that a reorg removed after it was reported as applied: also about four minutes. */
export const ANSWERED_TRIES = 34;

/**
 * Retries of an operation that failed on chain although its simulation succeeded: a reorg or a foreign transaction
 * changed the state it depends on.
 */
export const FAILED_TRIES = 2;

/**
 * Failures that a signer can cause after its signature passed every simulation: it is refused, the money is gone, or a
 * contract wallet used up the gas.
 */
export const SIGNATURE_FAULTS: ReadonlySet<string> = new Set([
  "PaymentFailed",
  "InvalidAuthorization",
  "InvalidActionSignature",
  "InvalidDelegationSignature",
  "Reverted",
  "OutOfGas",
  "UnknownError",
]);

/** Error of a call inside `withSurplus` that failed without a reason. */
const WITHOUT_REASON = "FailedCall";

/** The Solidity error's name, or the relayer's own reason if there is none. */
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
  /** Whether it was reported to its caller as applied. Operations it depends on can be pending again too. */
  answered: boolean;
  /** Whether the stablecoin currently refuses all transfers. */
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

/** Milliseconds until the next try. Operations reported as applied retry sooner, because others wait for them. */
export function retryDelay(tries: number, { answered = false } = {}): number {
  return Math.min(
    FIRST_RETRY_MS * 2 ** Math.min(tries, 20),
    answered ? LAST_ANSWERED_RETRY_MS : LAST_RETRY_MS,
  );
}
