import type { Address } from "@working-contracts/protocol/types";
import { encodePaymentResponseHeader } from "@x402/core/http";
import type { Hex } from "viem";
import { networkName, type X402Version } from "./quote.js";
import type { RejectionReason } from "./rejection.js";

export type SettlementOutcome =
  | { success: true; transaction: Hex; payer: Address; amount: bigint }
  | { success: false; errorReason: RejectionReason; errorMessage: string; payer: Address };

/** The receipt header of a paid call, in the payment's own version: `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`. */
export function receiptHeaders(input: {
  version: X402Version;
  chainId: number;
  outcome: SettlementOutcome;
}): Record<string, string> {
  const { version, chainId, outcome } = input;
  const receipt = {
    success: outcome.success,
    transaction: outcome.success ? outcome.transaction : "",
    network: networkName(chainId, version) as `${string}:${string}`,
    payer: outcome.payer,
    ...(outcome.success
      ? { amount: outcome.amount.toString() }
      : { errorReason: outcome.errorReason, errorMessage: outcome.errorMessage }),
  };
  const name = version === 2 ? "PAYMENT-RESPONSE" : "X-PAYMENT-RESPONSE";
  return { [name]: encodePaymentResponseHeader(receipt) };
}
