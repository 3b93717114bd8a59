/** Types that all modules share. Field names and units match contracts/types/Types.sol. */

export type Address = `0x${string}`;
export type Hex = `0x${string}`;

/** Economic parameters of one Working Contract: ratios in basis points, whole tokens, durations in seconds. */
export interface Parameters {
  protocolFee: number;
  workerStakeRatio: number;
  disputeBondRatio: number;
  backupAgentBondRatio: number;
  earlyWithdrawalSlashRatio: number;
  absentNoneMetClientShare: number;
  baUnclearSlashRatio: number;
  tokenMintRewardFull: number;
  tokenMintRewardReduced: number;
  baEligibilityStake: number;
  baVotingWindow: number;
  /** If zero, every eligible Backup Agent may vote. */
  baRecruitCount: number;
  payoutHold: number;
}

/** Everything that an escrow's address commits to, in the shape of the ABI's `Terms`. */
export interface EscrowTerms {
  initiator: Address;
  /** Base units of the stablecoin. */
  price: bigint;
  /** Named Worker or reserved Buyer; the zero address if anyone may accept. */
  counterparty: Address;
  criteriaCount: number;
  workerInitiated: boolean;
  /** Criteria are computed at delivery (usage ticket). */
  computedCriteria: boolean;
  /** Deadlines in seconds since 1970. */
  matchDeadline: number;
  withdrawalDeadline: number;
  deliveryDeadline: number;
  reviewDeadline: number;
  termsHash: Hex;
  parameters: Parameters;
}

/** The last stored step of an escrow, in the order of the Solidity enum. */
export const PHASES = [
  "none",
  "created",
  "matched",
  "delivered",
  "disputed",
  "approved",
  "tallied",
  "declined",
  "cancelled",
  "withdrawn",
] as const;
export type Phase = (typeof PHASES)[number];

export const ZERO_ADDRESS: Address = "0x0000000000000000000000000000000000000000";
