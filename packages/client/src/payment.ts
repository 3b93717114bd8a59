/** Checks a quote against the caller's own expectation, and signs the payment for it. */

import type { Address } from "@working-contracts/protocol/types";
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { authorizationTypes } from "@x402/evm";
import { toHex } from "viem";
import { RefusedToSign } from "./errors.js";
import type { Signer } from "./sign-in.js";
import type { PlannedPayment } from "./spending.js";
import type { PinnedNetwork } from "./types.js";

/** The only payment that may be signed. Every field is known before the quote, or proven from it. */
export interface Expected {
  payTo: string;
  /** Smallest unit of the currency. */
  amount: bigint;
  /** One of the network's two currencies, chosen by the kind of call and never by the service. */
  currency: PlannedPayment["currency"];
  resource: string;
}

type PaymentRequired = ReturnType<typeof decodePaymentRequiredHeader>;
export type Quote = PaymentRequired["accepts"][number];

export interface QuotedPayment {
  quote: Quote;
  required: PaymentRequired;
}

/**
 * Reads the quote of a 402 response, and the reason why an earlier payment was rejected. Throws RefusedToSign if there
 * is no readable quote.
 */
export function readQuote(headers: Headers): QuotedPayment & { error: string; message: string } {
  const header = headers.get("payment-required");
  if (header === null) throw new RefusedToSign("quote", "the 402 response has no Payment-Required header");
  let required: PaymentRequired;
  try {
    required = decodePaymentRequiredHeader(header);
  } catch {
    throw new RefusedToSign("quote", "the Payment-Required header cannot be read");
  }
  const [quote] = required.accepts ?? [];
  if (quote === undefined) throw new RefusedToSign("quote", "it offers no way to pay");
  const { error = "payment_required", errorMessage } = required as { error?: string; errorMessage?: string };
  return { quote, required, error, message: errorMessage ?? error };
}

/** Throws RefusedToSign at the first difference between the quote and the expected payment. */
export function requireExpected(
  { quote, required }: QuotedPayment,
  expected: Expected,
  network: PinnedNetwork,
): void {
  const quoted = quote as Quote & { maxAmountRequired?: string };
  const pairs: [field: string, quoted: unknown, wanted: string][] = [
    ["x402Version", required.x402Version, "2"],
    ["scheme", quoted.scheme, "exact"],
    ["network", quoted.network, `eip155:${network.chainId}`],
    ["asset", lower(quoted.asset), assetOf(expected, network)],
    ["payTo", lower(quoted.payTo), expected.payTo],
    ["amount", quoted.amount, expected.amount.toString()],
    ["amount", quoted.maxAmountRequired ?? quoted.amount, expected.amount.toString()],
    ["resource", required.resource?.url, expected.resource],
  ];
  for (const [field, value, wanted] of pairs) {
    if (String(value) !== wanted)
      throw new RefusedToSign(field, `the quote says ${value}, expected ${wanted}`);
  }
}

function assetOf({ currency }: Expected, { asset, protocolToken }: PinnedNetwork): string {
  return currency === "stablecoin" ? asset.address : protocolToken;
}

/** Signs a checked quote: returns `PAYMENT-SIGNATURE` with an EIP-3009 authorization, valid ten minutes from `now`. */
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

/** Leaves time for an operation that has to queue: once this has passed, the service does not retry it. */
const VALIDITY_SECONDS = 600;

function lower(text: unknown): unknown {
  return typeof text === "string" ? text.toLowerCase() : text;
}
