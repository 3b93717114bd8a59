import { isoDuration } from "@working-contracts/protocol/iso-duration";
import type { Parameters } from "@working-contracts/protocol/types";

/** The parameters as `GET /v1/protocol` shows them (spec.md, "Protocol parameters"). */
export interface ProtocolView {
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
  baVotingWindow: string;
  baRecruitCount: number | null;
}

/** Basis points as fractions, the window as an ISO 8601 duration; `payoutHold` is served with the limits. */
export function presentParameters(parameters: Parameters): ProtocolView {
  return {
    protocolFee: fraction(parameters.protocolFee),
    workerStakeRatio: fraction(parameters.workerStakeRatio),
    disputeBondRatio: fraction(parameters.disputeBondRatio),
    backupAgentBondRatio: fraction(parameters.backupAgentBondRatio),
    earlyWithdrawalSlashRatio: fraction(parameters.earlyWithdrawalSlashRatio),
    absentNoneMetClientShare: fraction(parameters.absentNoneMetClientShare),
    baUnclearSlashRatio: fraction(parameters.baUnclearSlashRatio),
    tokenMintRewardFull: parameters.tokenMintRewardFull,
    tokenMintRewardReduced: parameters.tokenMintRewardReduced,
    baEligibilityStake: parameters.baEligibilityStake,
    baVotingWindow: isoDuration(parameters.baVotingWindow),
    baRecruitCount: parameters.baRecruitCount === 0 ? null : parameters.baRecruitCount,
  };
}

/** One division of two integers: the nearest double, which JSON prints as the short decimal. */
const fraction = (basisPoints: number): number => basisPoints / 10_000;
