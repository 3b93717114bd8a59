import { isoDuration, type ParameterName, type Parameters } from "@working-contracts/protocol/parameters";

/** The parameters as `GET /v1/protocol` shows them (spec.md, "Protocol parameters"). */
export interface ProtocolView
  extends Record<Exclude<ParameterName, "baVotingWindow" | "baRecruitCount" | "payoutHold">, number> {
  baVotingWindow: string;
  baRecruitCount: number | null;
}

/** Basis points as fractions, the window as an ISO 8601 duration; `payoutHold` is served with the limits. */
export function presentParameters({ payoutHold: _, ...parameters }: Parameters): ProtocolView {
  return {
    ...parameters,
    protocolFee: fraction(parameters.protocolFee),
    workerStakeRatio: fraction(parameters.workerStakeRatio),
    disputeBondRatio: fraction(parameters.disputeBondRatio),
    backupAgentBondRatio: fraction(parameters.backupAgentBondRatio),
    earlyWithdrawalSlashRatio: fraction(parameters.earlyWithdrawalSlashRatio),
    absentNoneMetClientShare: fraction(parameters.absentNoneMetClientShare),
    baUnclearSlashRatio: fraction(parameters.baUnclearSlashRatio),
    baVotingWindow: isoDuration(parameters.baVotingWindow),
    baRecruitCount: parameters.baRecruitCount === 0 ? null : parameters.baRecruitCount,
  };
}

/** One division of two integers: the nearest double, which JSON prints as the short decimal. */
const fraction = (basisPoints: number): number => basisPoints / 10_000;
