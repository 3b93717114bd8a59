/**
 * The economic parameters of one Working Contract, named once: ratios in basis points, whole tokens, durations in
 * seconds. The Solidity struct and the index repeat the names, and tests compare them.
 */

/** Each parameter's packed width in bytes, in packing order (TermsCodec.sol), and the specification's value. */
const PARAMETERS = {
  protocolFee: { width: 2, value: 500 },
  workerStakeRatio: { width: 2, value: 500 },
  disputeBondRatio: { width: 2, value: 500 },
  backupAgentBondRatio: { width: 2, value: 500 },
  earlyWithdrawalSlashRatio: { width: 2, value: 3000 },
  absentNoneMetClientShare: { width: 2, value: 8000 },
  baUnclearSlashRatio: { width: 2, value: 3000 },
  tokenMintRewardFull: { width: 2, value: 10 },
  tokenMintRewardReduced: { width: 2, value: 4 },
  baEligibilityStake: { width: 4, value: 1000 },
  baVotingWindow: { width: 3, value: 86_400 },
  /** If zero, every eligible Backup Agent may vote. */
  baRecruitCount: { width: 1, value: 0 },
  payoutHold: { width: 3, value: 0 },
} as const;

export type ParameterName = keyof typeof PARAMETERS;
export type Parameters = Record<ParameterName, number>;

export const PARAMETER_NAMES: readonly ParameterName[] = Object.keys(PARAMETERS) as ParameterName[];
export const PARAMETER_WIDTHS = eachParameter((name) => PARAMETERS[name].width);
/** The specification's values. */
export const DEFAULT_PARAMETERS: Parameters = eachParameter((name) => PARAMETERS[name].value);

/** An object with one value per parameter, in packing order. */
export function eachParameter<T>(of: (name: ParameterName) => T): Record<ParameterName, T> {
  return Object.fromEntries(PARAMETER_NAMES.map((name) => [name, of(name)])) as Record<ParameterName, T>;
}
