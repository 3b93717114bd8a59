/**
 * The economic parameters of one Working Contract, named once: ratios in basis points, whole tokens, durations in
 * seconds. The Solidity struct and the index repeat the names, and tests compare them.
 */

interface Parameter {
  width: number;
  value: number;
  min?: number;
  max?: number;
}

const WHOLE = 10_000;
const DAY = 86_400;

/**
 * Each parameter's packed width in bytes, in packing order (TermsCodec.sol), the specification's value, and the bounds
 * that WorkingContractFactory enforces.
 */
const PARAMETERS = {
  protocolFee: { width: 2, value: 500, max: 2000 },
  workerStakeRatio: { width: 2, value: 500, max: WHOLE },
  disputeBondRatio: { width: 2, value: 500, max: WHOLE },
  backupAgentBondRatio: { width: 2, value: 500, max: WHOLE },
  earlyWithdrawalSlashRatio: { width: 2, value: 3000, max: WHOLE },
  absentNoneMetClientShare: { width: 2, value: 8000, max: WHOLE },
  baUnclearSlashRatio: { width: 2, value: 3000, max: WHOLE },
  tokenMintRewardFull: { width: 2, value: 10 },
  tokenMintRewardReduced: { width: 2, value: 4 },
  baEligibilityStake: { width: 4, value: 1000, min: 1000 },
  baVotingWindow: { width: 3, value: DAY, min: DAY / 24, max: 30 * DAY },
  /** If zero, every eligible Backup Agent may vote. */
  baRecruitCount: { width: 1, value: 0, max: 31 },
  payoutHold: { width: 3, value: 0, max: 3 * DAY },
} as const satisfies Record<string, Parameter>;

export type ParameterName = keyof typeof PARAMETERS;
export type Parameters = Record<ParameterName, number>;

export const PARAMETER_NAMES: readonly ParameterName[] = Object.keys(PARAMETERS) as ParameterName[];
export const PARAMETER_WIDTHS = eachParameter((name) => PARAMETERS[name].width);
/** The specification's values. */
export const DEFAULT_PARAMETERS: Parameters = eachParameter((name) => PARAMETERS[name].value);

/** The first parameter that no factory accepts; undefined if all are within their bounds. */
export function outOfBounds(parameters: Parameters): ParameterName | undefined {
  return PARAMETER_NAMES.find((name) => {
    const { min, max } = boundsOf(name);
    const value = parameters[name];
    return !Number.isInteger(value) || value < min || value > max;
  });
}

/** The smallest and the greatest value that a factory accepts. */
export function boundsOf(name: ParameterName): { min: number; max: number } {
  const { width, min = 0, max = 256 ** width - 1 }: Parameter = PARAMETERS[name];
  return { min, max };
}

/** An object with one value per parameter, in packing order. */
export function eachParameter<T>(of: (name: ParameterName) => T): Record<ParameterName, T> {
  return Object.fromEntries(PARAMETER_NAMES.map((name) => [name, of(name)])) as Record<ParameterName, T>;
}
