/** What an agent may sign away: limits in decimals, held in memory as long as the agent lives. */
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { SpendingLimitError } from "./errors.js";

/** Decimals; what is not given is not allowed, but `total`, which then has no limit of its own. */
export interface SpendingLimit {
  /** The most that one call may pay, in the stablecoin. */
  perCall?: string;
  /** The most that all calls together may pay, in the stablecoin. */
  total?: string;
  /** The most that one call may stake, in protocol tokens. */
  stake?: string;
}

/** A payment that is about to be signed. */
export interface PlannedPayment {
  currency: "stablecoin" | "protocol-token";
  /** Smallest unit. */
  amount: bigint;
  /** The amount as people write it. */
  decimal: string;
  /** The call that is paid for. */
  resource: string;
}

export interface Budget {
  /** Counts the payment; throws SpendingLimitError where it must not be signed. */
  spend(payment: PlannedPayment): void;
}

/** A signed payment counts whatever comes of it: whoever holds the signature can use it. */
export function createBudget(limit: SpendingLimit | undefined): Budget {
  const perCall = unitsOf(limit?.perCall, "perCall");
  const total = unitsOf(limit?.total, "total");
  const stake = unitsOf(limit?.stake, "stake", TOKEN_DECIMALS);
  let spent = 0n;
  return {
    spend({ currency, amount, decimal, resource }) {
      const isStake = currency === "protocol-token";
      const most = isStake ? stake : perCall;
      const name = isStake ? "stake" : "perCall";
      if (most === null) {
        throw new SpendingLimitError(`${resource} costs ${decimal}; allow it with spendingLimit.${name}.`);
      }
      if (amount > most) {
        const allowed = formatDecimal(most, isStake ? TOKEN_DECIMALS : undefined);
        throw new SpendingLimitError(
          `${resource} costs ${decimal}, more than spendingLimit.${name}, ${allowed}.`,
        );
      }
      if (isStake) return;
      if (total !== null && spent + amount > total) {
        throw new SpendingLimitError(
          `${resource} costs ${decimal}; with the ${formatDecimal(spent)} signed before it exceeds spendingLimit.total, ${formatDecimal(total)}.`,
        );
      }
      spent += amount;
    },
  };
}

function unitsOf(decimal: string | undefined, name: string, decimals?: number): bigint | null {
  if (decimal === undefined) return null;
  const units = parseDecimal(decimal, decimals);
  if (units === null) throw new RangeError(`spendingLimit.${name}: ${decimal} is not a decimal`);
  return units;
}
