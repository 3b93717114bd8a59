import type { Address } from "@working-contracts/protocol/types";
import { decodePaymentSignatureHeader } from "@x402/core/http";
import type { Hex } from "viem";
import { z } from "zod";
import type { HeaderReader, X402Version } from "./quote.js";
import { type Rejection, reject } from "./rejection.js";

/** A signed stablecoin transfer as the client sent it: shape checked, nothing verified. Addresses in lower case. */
export interface PaymentAuthorization {
  version: X402Version;
  scheme: string | null;
  network: string | null;
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
  signature: Hex;
  /** The quote as the client echoed it (version 2), with the fields it kept. */
  accepted: EchoedQuote | null;
  /** The client's own name for this payment (extension `payment-identifier`), if it sent one. */
  paymentIdentifier: string | null;
}

export type DecodedPayment = { ok: true; version: X402Version; payment: PaymentAuthorization } | Rejection;

/** 8 KiB: passkey and multi-owner wallets sign with hundreds of bytes, none with thousands. */
const MAX_SIGNATURE_BYTES = 8 * 1024;
/** Room for the largest signature in hex, the echoed quote and extensions, in base64. */
const MAX_HEADER_CHARACTERS = 32 * 1024;

const AddressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "expected an address")
  .transform((text) => text.toLowerCase() as Address);

const Uint256Schema = z
  .string()
  .regex(/^[0-9]{1,78}$/, "expected an unsigned integer in decimal digits, as a string")
  .transform((digits) => BigInt(digits))
  .refine((value) => value < 2n ** 256n, "exceeds uint256");

const PayloadSchema = z.object({
  signature: z
    .string()
    .regex(/^0x(?:[0-9a-fA-F]{2})+$/, "expected a signature in hex")
    .refine((hex) => hex.length <= 2 + 2 * MAX_SIGNATURE_BYTES, `exceeds ${MAX_SIGNATURE_BYTES} bytes`)
    .transform((hex) => hex.toLowerCase() as Hex),
  authorization: z.object({
    from: AddressSchema,
    to: AddressSchema,
    value: Uint256Schema,
    validAfter: Uint256Schema,
    validBefore: Uint256Schema,
    nonce: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, "expected 32 bytes in hex")
      .transform((hex) => hex.toLowerCase() as Hex),
  }),
});

/** Only the fields that decide something: clients differ in which other keys of the quote they keep. */
const EchoedQuoteSchema = z.object({
  scheme: z.string().optional(),
  network: z.string().optional(),
  asset: z.string().optional(),
  payTo: z.string().optional(),
  amount: z.string().optional(),
  maxAmountRequired: z.string().optional(),
});

export type EchoedQuote = z.infer<typeof EchoedQuoteSchema>;

const PaymentIdentifierSchema = z.object({
  info: z.object({
    id: z
      .string()
      .regex(/^[A-Za-z0-9_-]{16,128}$/, "expected 16 to 128 letters, digits, - or _")
      .optional(),
  }),
});

const EnvelopeSchema = z.object({
  scheme: z.string().nullish(),
  network: z.string().nullish(),
  accepted: EchoedQuoteSchema.nullish(),
  payload: PayloadSchema,
  extensions: z.object({ "payment-identifier": PaymentIdentifierSchema.optional() }).nullish(),
});

/**
 * The payment in a request's `PAYMENT-SIGNATURE` (version 2) or `X-PAYMENT` (version 1) header, or null if there is
 * neither. Never throws: a header that cannot be decoded gives a rejection.
 */
export function decodePayment(headers: HeaderReader): DecodedPayment | null {
  const v2 = headers.get("PAYMENT-SIGNATURE");
  const v1 = headers.get("X-PAYMENT");
  if (v2 !== null && v1 !== null) {
    return reject(
      "invalid_payload",
      "Send either PAYMENT-SIGNATURE (x402 version 2) or X-PAYMENT (version 1), not both.",
    );
  }
  if (v2 !== null) return decodeHeader({ name: "PAYMENT-SIGNATURE", value: v2, version: 2 });
  if (v1 !== null) return decodeHeader({ name: "X-PAYMENT", value: v1, version: 1 });
  return null;
}

function decodeHeader(header: { name: string; value: string; version: X402Version }): DecodedPayment {
  const { name, version } = header;
  const json = parseBase64Json(header);
  if (!json.ok) return json;

  const given = statedVersion(json.value);
  if (given !== version) {
    return reject(
      "invalid_x402_version",
      `The ${name} header carries x402Version ${version}, not ${describe(given)}. Version 2 goes into PAYMENT-SIGNATURE, version 1 into X-PAYMENT.`,
    );
  }

  const parsed = EnvelopeSchema.safeParse(json.value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const place = issue?.path.map(String).join(".") || "payment";
    return reject(
      "invalid_payload",
      `The payment in ${name} is malformed at ${place}: ${issue?.message ?? "invalid"}.`,
    );
  }

  const { scheme, network, accepted, payload, extensions } = parsed.data;
  return {
    ok: true,
    version,
    payment: {
      version,
      scheme: scheme ?? accepted?.scheme ?? null,
      network: network ?? accepted?.network ?? null,
      ...payload.authorization,
      signature: payload.signature,
      accepted: accepted ?? null,
      paymentIdentifier: extensions?.["payment-identifier"]?.info.id ?? null,
    },
  };
}

function parseBase64Json(header: { name: string; value: string }): { ok: true; value: unknown } | Rejection {
  const { name, value } = header;
  if (value.length > MAX_HEADER_CHARACTERS) {
    return reject("invalid_payload", `The ${name} header exceeds ${MAX_HEADER_CHARACTERS} characters.`);
  }
  // Headers joins repeated values with a comma, which base64 does not have.
  if (value.includes(",")) {
    return reject("invalid_payload", `The ${name} header must be sent once, as one base64 value.`);
  }
  try {
    return { ok: true, value: decodePaymentSignatureHeader(value) };
  } catch {
    return reject("invalid_payload", `The ${name} header must be standard base64 of a JSON object.`);
  }
}

function statedVersion(value: unknown): unknown {
  return typeof value === "object" && value !== null && "x402Version" in value
    ? value.x402Version
    : undefined;
}

function describe(version: unknown): string {
  return typeof version === "number" ? String(version) : "a missing or non-numeric one";
}
