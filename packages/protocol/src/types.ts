/** The words that all modules share; field names and units are those of contracts/types/Types.sol. */

export type Address = `0x${string}`;
export type Hex = `0x${string}`;

/** Economic parameters of one Working Contract: ratios in basis points, tokens whole, durations in seconds. */
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
  /** Zero: every eligible Backup Agent may vote. */
  baRecruitCount: number;
  payoutHold: number;
}

/** All that an escrow's address commits to; can be passed as it is where the ABI wants `Terms`. */
export interface EscrowTerms {
  initiator: Address;
  /** Base units of the stablecoin. */
  price: bigint;
  /** Named Worker or reserved Buyer; the zero address where anybody may accept. */
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

/** What happened last, as the escrow stores it; in the order of the Solidity enum. */
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
