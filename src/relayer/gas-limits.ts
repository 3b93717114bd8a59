/** Gas limits the Relay enforces per kind of operation. */
import type { Hex } from "@working-contracts/protocol/types";

export const OPERATION_KINDS = [
  "delegate",
  "revoke-delegation",
  "create",
  "accept",
  "decline",
  "cancel",
  "deliver",
  "withdraw",
  "approve",
  "dispute",
  "vote",
  "draw",
  "open-vote",
  "tally",
  "settle",
  "claim",
  "claim-deferred",
  "return-surplus",
  "stake",
  "request-unstake",
  "withdraw-stake",
] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/**
 * Upper bounds, about twice the costliest ordinary call (test/contracts/snapshots), to leave room for a proxied
 * stablecoin, cold storage and first payments. They are not higher because a batch reserves their sum and a hostile
 * contract wallet can burn its whole limit.
 */
export const GAS_LIMITS: Record<OperationKind, number> = {
  delegate: 200_000,
  "revoke-delegation": 80_000,
  create: 350_000,
  accept: 200_000,
  decline: 80_000,
  cancel: 80_000,
  deliver: 80_000,
  withdraw: 80_000,
  approve: 80_000,
  dispute: 220_000,
  vote: 280_000,
  // 31 seats, up to four tries each.
  draw: 3_000_000,
  "open-vote": 150_000,
  tally: 150_000,
  settle: 250_000,
  claim: 250_000,
  "claim-deferred": 150_000,
  "return-surplus": 200_000,
  stake: 280_000,
  "request-unstake": 120_000,
  "withdraw-stake": 120_000,
};

/** Hex length of an externally owned account's signature. A contract wallet's is longer and costs more to verify. */
const ORDINARY_SIGNATURE_LENGTH = 2 + 2 * 65;
const CONTRACT_WALLET_GAS = 400_000;

/** Extra gas for verifying `signature`, on top of the kind's limit. */
export function signatureGas(signature: Hex): number {
  return signature.length > ORDINARY_SIGNATURE_LENGTH ? CONTRACT_WALLET_GAS : 0;
}
