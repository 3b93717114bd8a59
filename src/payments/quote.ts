/** The x402 headers and bodies of our responses: quotes and receipts. */
import type { Address } from "@working-contracts/protocol/types";
import {
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
  PAYMENT_REQUIRED_CACHE_CONTROL,
} from "@x402/core/http";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import type { Hex } from "viem";
import type { Rejection, RejectionReason } from "./rejection.js";

export type X402Version = 1 | 2;

/** The token to pay in; name and version are those of its EIP-712 domain. */
export interface PaymentAsset {
  address: Address;
  name: string;
  version: string;
}

/** The price of one paid call and its payee: everything that a payment is checked against. */
export interface PaymentQuote {
  payTo: Address;
  amount: bigint;
  asset: PaymentAsset;
  chainId: number;
  resourceUrl: string;
  description: string;
}

/** A complete 402 response; 402 bodies have neither the data nor the error envelope. */
interface PaymentRequired {
  status: 402;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export const PAYMENT_TIMEOUT_SECONDS = 60;
const MIME_TYPE = "application/json";

/** Announces the x402 extension `payment-identifier`: clients can name a payment to make retries safe. */
export const PAYMENT_IDENTIFIER_EXTENSION = {
  "payment-identifier": {
    info: { required: false },
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        required: { type: "boolean" },
        id: { type: "string", minLength: 16, maxLength: 128 },
      },
      required: ["required"],
    },
  },
};

/** The quote with its addresses in lower case, so that later comparisons are plain string comparisons. */
export function createQuote(quote: PaymentQuote): PaymentQuote {
  return {
    payTo: quote.payTo.toLowerCase() as Address,
    amount: quote.amount,
    asset: { ...quote.asset, address: quote.asset.address.toLowerCase() as Address },
    chainId: quote.chainId,
    resourceUrl: quote.resourceUrl,
    description: quote.description,
  };
}

/** The chain's name in x402: CAIP-2 in version 2; in version 1 the short name, if there is one. */
export function networkName(chainId: number, version: X402Version): `${string}:${string}` | string {
  const caip2 = `eip155:${chainId}`;
  if (version === 2) return caip2;
  const known = Object.entries(EVM_NETWORK_CHAIN_ID_MAP).find(([, id]) => id === chainId);
  return known?.[0] ?? caip2;
}

/** The version of a 402: the client's own, if its headers show one; otherwise version 1 only if the operator chose it. */
export function responseVersion(headers: HeaderReader, settings: { v1Bodies: boolean }): X402Version {
  if (headers.get("PAYMENT-SIGNATURE") !== null) return 2;
  if (headers.get("X-PAYMENT") !== null) return 1;
  const asked = headers.get("X-402-Version")?.trim();
  if (asked === "1") return 1;
  if (asked === "2") return 2;
  return settings.v1Bodies ? 1 : 2;
}

/** Anything with the `get` of the Fetch API's Headers. */
export interface HeaderReader {
  get(name: string): string | null;
}

/**
 * The 402 for a quote, with the reason if a payment was refused. The version 2 header is always present, so version 2
 * clients can pay even if version 1 bodies are switched on for everyone.
 */
export function paymentRequired(input: {
  quote: PaymentQuote;
  version: X402Version;
  rejection?: Rejection;
  extensions?: Record<string, unknown>;
}): PaymentRequired {
  const { quote, version, rejection, extensions } = input;
  const refusal = rejection && { error: rejection.reason, errorMessage: rejection.message };
  const header = {
    x402Version: 2,
    ...(refusal ?? { error: "PAYMENT-SIGNATURE header is required" }),
    resource: { url: quote.resourceUrl, description: quote.description, mimeType: MIME_TYPE },
    accepts: [quoteEntry(quote, 2)],
    ...(extensions && { extensions }),
  };
  const bodyV1 = {
    x402Version: 1,
    ...(refusal ?? { error: "X-PAYMENT header is required" }),
    accepts: [quoteEntry(quote, 1)],
  };
  return {
    status: 402,
    headers: {
      "Payment-Required": encodePaymentRequiredHeader(
        header as unknown as Parameters<typeof encodePaymentRequiredHeader>[0],
      ),
      "Cache-Control": PAYMENT_REQUIRED_CACHE_CONTROL,
    },
    body: version === 1 ? bodyV1 : {},
  };
}

function quoteEntry(quote: PaymentQuote, version: X402Version) {
  const amount = quote.amount.toString();
  return {
    scheme: "exact",
    network: networkName(quote.chainId, version),
    ...(version === 2 && { amount }),
    maxAmountRequired: amount,
    resource: quote.resourceUrl,
    description: quote.description,
    mimeType: MIME_TYPE,
    payTo: quote.payTo,
    maxTimeoutSeconds: PAYMENT_TIMEOUT_SECONDS,
    asset: quote.asset.address,
    extra: { name: quote.asset.name, version: quote.asset.version },
  };
}

type SettlementOutcome =
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
