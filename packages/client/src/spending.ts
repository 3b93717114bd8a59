/** Spending limits of an agent, kept in memory for as long as it is connected. */
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import { SpendingLimitError } from "./errors.js";

/** Decimal amounts. If `perCall` or `stake` is absent, such payments are refused; without `total` there is no total. */
export interface SpendingLimit {
  /** Maximum payment of one call, in the stablecoin. */
  perCall?: string;
  /** Maximum payment of all calls together, in the stablecoin. */
  total?: string;
  /** Maximum stake of one call, in protocol tokens. */
  stake?: string;
}

/** A payment that is about to be signed. */
export interface PlannedPayment {
  currency: "stablecoin" | "protocol-token";
  /** Address of the token. */
  token: string;
  /** Smallest unit. */
  amount: bigint;
  /** The amount as a decimal. */
  decimal: string;
  /** URL of the request that is paid for; the escrow's address of a payment without the service. */
  resource: string;
  /** The contract's escrow, or the registry of stakes. */
  payTo: string;
  /** The payer has it, or gets it by this payment. */
  role: "Client" | "Worker" | "Backup Agent";
  /** Of the contract that is paid for, among them the protocol's parameters for it: fee, ratios, voting window. */
  terms?: EscrowTerms;
}

/** A step of a payment: its quote is checked, it is about to be signed, it is sent, or it is used. */
export interface PaymentProgress {
  step: "quoted" | "signing" | "sent" | "paid";
  payment: PlannedPayment;
}

export interface Budget {
  /** Counts the payment. Throws SpendingLimitError if it must not be signed. */
  spend(payment: PlannedPayment): void;
}

/** A signed payment counts regardless of its outcome, because anyone who holds the signature can use it. */
export function createBudget(limit: SpendingLimit | undefined): Budget {
  const perCall = unitsOf(limit?.perCall, "perCall");
  const total = unitsOf(limit?.total, "total");
  const stake = unitsOf(limit?.stake, "stake", TOKEN_DECIMALS);
  let spent = 0n;
  return {
    spend({ currency, amount, decimal, resource }) {
      const isStake = currency === "protocol-token";
      const most = isStake ? stake : perCall;
      const name = isStake ? "stake (wcontract mcp: --max-stake)" : "perCall";
      if (most === null) {
        throw new SpendingLimitError(
          `${resource} costs ${decimal}. Set spendingLimit.${name} to allow such payments.`,
        );
      }
      if (amount > most) {
        const allowed = formatDecimal(most, isStake ? TOKEN_DECIMALS : undefined);
        throw new SpendingLimitError(
          `${resource} costs ${decimal}, more than ${allowed}, the spendingLimit.${name}.`,
        );
      }
      if (isStake) return;
      if (total !== null && spent + amount > total) {
        throw new SpendingLimitError(
          `${resource} costs ${decimal}. Together with the ${formatDecimal(spent)} already signed, this exceeds spendingLimit.total (${formatDecimal(total)}).`,
        );
      }
      spent += amount;
    },
  };
}

function unitsOf(decimal: string | undefined, name: string, decimals?: number): bigint | null {
  if (decimal === undefined) return null;
  const units = parseDecimal(decimal, decimals);
  if (units === null) throw new RangeError(`spendingLimit.${name}: ${decimal} is not a decimal amount`);
  return units;
}
