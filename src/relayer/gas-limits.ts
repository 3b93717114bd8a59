/** Gas that the Relay gives each kind of operation. */

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
 * Upper bounds, about twice what the costliest ordinary call measures (a proxied stablecoin, a contract wallet that
 * verifies a signature, cold storage). Generous, because an operation that runs out of gas fails; bounded, because a
 * batch has to reserve the sum, and because a hostile contract wallet may burn all it is given.
 */
export const GAS_LIMITS: Record<OperationKind, number> = {
  delegate: 250_000,
  "revoke-delegation": 100_000,
  create: 500_000,
  accept: 300_000,
  decline: 120_000,
  cancel: 120_000,
  deliver: 120_000,
  withdraw: 120_000,
  approve: 120_000,
  dispute: 300_000,
  vote: 400_000,
  draw: 3_000_000,
  "open-vote": 200_000,
  tally: 200_000,
  settle: 400_000,
  claim: 400_000,
  "claim-deferred": 200_000,
  "return-surplus": 300_000,
  stake: 350_000,
  "request-unstake": 150_000,
  "withdraw-stake": 150_000,
};
