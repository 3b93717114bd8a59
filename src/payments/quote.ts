import type { Address } from "@working-contracts/protocol/types";
import { encodePaymentRequiredHeader, PAYMENT_REQUIRED_CACHE_CONTROL } from "@x402/core/http";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import type { Rejection } from "./rejection.js";

export type X402Version = 1 | 2;

/** The stablecoin asked for; name and version are those of its EIP-712 domain. */
export interface PaymentAsset {
  address: Address;
  name: string;
  version: string;
}

/** What one paid call costs and where the money goes: everything a payment is checked against. */
export interface PaymentQuote {
  payTo: Address;
  amount: bigint;
  asset: PaymentAsset;
  chainId: number;
  resourceUrl: string;
  description: string;
}

/** A complete 402 answer; 402 bodies have neither the data nor the error envelope. */
export interface PaymentRequiredAnswer {
  status: 402;
  headers: Record<string, string>;
  body: Record<string, unknown>;
}

export const PAYMENT_TIMEOUT_SECONDS = 60;
const MIME_TYPE = "application/json";

/** Announces the x402 extension `payment-identifier`: clients may name a payment to make its repetition safe. */
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

/** The chain's name in x402: CAIP-2 in version 2; in version 1 the short name, where there is one. */
export function networkName(chainId: number, version: X402Version): `${string}:${string}` | string {
  const caip2 = `eip155:${chainId}`;
  if (version === 2) return caip2;
  const known = Object.entries(EVM_NETWORK_CHAIN_ID_MAP).find(([, id]) => id === chainId);
  return known?.[0] ?? caip2;
}

/** The version a 402 answers in: the client's own, where its headers show one; else version 1 only if the operator said so. */
export function answerVersion(headers: HeaderReader, settings: { v1Bodies: boolean }): X402Version {
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
 * The 402 for a quote, with the reason of the refusal where a payment was refused. The version 2 header is always
 * there, so that version 2 clients can also pay where version 1 bodies are switched on for everybody.
 */
export function paymentRequired(input: {
  quote: PaymentQuote;
  version: X402Version;
  rejection?: Rejection;
  extensions?: Record<string, unknown>;
}): PaymentRequiredAnswer {
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
