/** A quote, checked against what the caller itself knows, and the signature that pays it. */

import type { Address } from "@working-contracts/protocol/types";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { authorizationTypes } from "@x402/evm";
import { toHex } from "viem";
import { RefusedToSign } from "./errors.js";
import type { Signer } from "./sign-in.js";
import type { PlannedPayment } from "./spending.js";
import type { PinnedNetwork } from "./types.js";

/** What a payment may be for: all of it known before the quote, or proven from it. */
export interface Expected {
  payTo: string;
  /** Smallest unit of the currency. */
  amount: bigint;
  /** Which of the network's two, by what the call is: never by what the service says. */
  currency: PlannedPayment["currency"];
  resource: string;
}

type PaymentRequired = ReturnType<typeof decodePaymentRequiredHeader>;
export type Quote = PaymentRequired["accepts"][number];

export interface QuotedPayment {
  quote: Quote;
  required: PaymentRequired;
}

/** The quote of a 402, and why an earlier payment was refused; throws RefusedToSign where there is none to be read. */
export function readQuote(headers: Headers): QuotedPayment & { error: string; message: string } {
  const header = headers.get("payment-required");
  if (header === null) throw new RefusedToSign("quote", "the answer 402 has no Payment-Required header");
  let required: PaymentRequired;
  try {
    required = decodePaymentRequiredHeader(header);
  } catch {
    throw new RefusedToSign("quote", "the Payment-Required header cannot be read");
  }
  const [quote] = required.accepts ?? [];
  if (quote === undefined) throw new RefusedToSign("quote", "it accepts nothing");
  const { error = "payment_required", errorMessage } = required as { error?: string; errorMessage?: string };
  return { quote, required, error, message: errorMessage ?? error };
}

/** Throws RefusedToSign at the first difference between a quote and what it must be. */
export function requireExpected(
  { quote, required }: QuotedPayment,
  expected: Expected,
  network: PinnedNetwork,
): void {
  const told = quote as Quote & { maxAmountRequired?: string };
  const pairs: [field: string, told: unknown, wanted: string][] = [
    ["x402Version", required.x402Version, "2"],
    ["scheme", told.scheme, "exact"],
    ["network", told.network, `eip155:${network.chainId}`],
    ["asset", lower(told.asset), assetOf(expected, network)],
    ["payTo", lower(told.payTo), expected.payTo],
    ["amount", told.amount, expected.amount.toString()],
    ["amount", told.maxAmountRequired ?? told.amount, expected.amount.toString()],
    ["resource", required.resource?.url, expected.resource],
  ];
  for (const [field, value, wanted] of pairs) {
    if (String(value) !== wanted)
      throw new RefusedToSign(field, `the quote says ${value}, and it must be ${wanted}`);
  }
}

function assetOf({ currency }: Expected, { asset, protocolToken }: PinnedNetwork): string {
  return currency === "stablecoin" ? asset.address : protocolToken;
}

/** The `PAYMENT-SIGNATURE` of a quote that has been checked: an EIP-3009 authorization, valid ten minutes from `now`. */
export async function signPayment(
  { quote, required }: QuotedPayment,
  { signer, network, now }: { signer: Signer; network: PinnedNetwork; now: number },
): Promise<string> {
  const message = {
    from: signer.address,
    to: quote.payTo as Address,
    value: BigInt(quote.amount),
    validAfter: 0n,
    validBefore: BigInt(now + VALIDITY_SECONDS),
    nonce: toHex(crypto.getRandomValues(new Uint8Array(32))),
  };
  const { name, version } = quote.extra as { name: string; version: string };
  const signature = await signer.signTypedData({
    domain: { name, version, chainId: network.chainId, verifyingContract: quote.asset as Address },
    types: authorizationTypes,
    primaryType: "TransferWithAuthorization",
    message,
  });
  const authorization = {
    ...message,
    value: message.value.toString(),
    validAfter: message.validAfter.toString(),
    validBefore: message.validBefore.toString(),
  };
  return encodePaymentSignatureHeader({
    x402Version: 2,
    resource: required.resource,
    accepted: quote,
    payload: { signature, authorization },
  });
}

/** Room for an operation that has to wait: the service repeats nothing once this has passed. */
const VALIDITY_SECONDS = 600;

function lower(text: unknown): unknown {
  return typeof text === "string" ? text.toLowerCase() : text;
}
