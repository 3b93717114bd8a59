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
/**
 * Tries of an operation that waits for others, some four minutes: a keeper's that is too early (the keeper brings it
 * again), or one that a reorganisation took back after its caller was told that it was applied.
 */
export const WAITING_TRIES = 8;

/** The Solidity error's name, or the relayer's own word for failures without one. */
export function failureReason(data: Hex, outOfGas: boolean): string {
  if (data !== "0x") return decodeRevert(data)?.name ?? "UnknownError";
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
  if (tokenPaused) return { verdict: "hold", reason: "TokenPaused", data };
  const mayWait = answered || (fromKeeper && TOO_EARLY.has(reason));
  if (mayWait && tries < WAITING_TRIES) return { verdict: "hold", reason, data };
  return { verdict: "reject", reason, data };
}

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 5 * 60_000;

/** How long to wait before the next try. */
export function retryDelay(tries: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** Math.min(tries, 20), LAST_RETRY_MS);
}
