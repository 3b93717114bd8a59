/**
 * The x402 wire format: quotes, refusals and receipts in our responses, payments in requests. And signed offers and
 * receipts (extension `offer-receipt`), whose key the service's `did:web` document publishes.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign as signBytes } from "node:crypto";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex, RejectionReason } from "@working-contracts/protocol/types";
import { decodePaymentSignatureHeader, PAYMENT_REQUIRED_CACHE_CONTROL } from "@x402/core/http";
import canonicalize from "canonicalize";
import { z } from "zod";
import { shortNameOf } from "../chain/clients.js";
import type { Config } from "../config.js";
import { deriveSecret, masterKeyId } from "../master-key.js";

type X402Version = 1 | 2;

/** The token to pay in; name and version are those of its EIP-712 domain. */
export interface PaymentAsset {
  address: Address;
  name: string;
  version: string;
}

/** The price of one paid call and its payee: everything that a payment is checked against. Addresses in lower case. */
export interface PaymentQuote {
  payTo: Address;
  amount: bigint;
  asset: PaymentAsset;
  chainId: number;
  resourceUrl: string;
  description: string;
}

const MIME_TYPE = "application/json";

/** The chain's name in x402: CAIP-2 in version 2; in version 1 the short name, if there is one. */
export function networkName(chainId: number, version: X402Version): string {
  return version === 2 ? `eip155:${chainId}` : shortNameOf(chainId);
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
 * Headers and body of the 402 for a quote, with the reason if a payment was refused. The version 2 header is always
 * present, so version 2 clients can pay even if version 1 bodies are switched on for everyone.
 */
export function paymentRequired(input: {
  quote: PaymentQuote;
  version: X402Version;
  rejection?: Rejection;
  extensions?: Record<string, unknown>;
}): { headers: Record<string, string>; body: Record<string, unknown> } {
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
    headers: {
      "Payment-Required": encodeHeader(header),
      "Cache-Control": PAYMENT_REQUIRED_CACHE_CONTROL,
    },
    body: version === 1 ? bodyV1 : (refusal ?? {}),
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
    maxTimeoutSeconds: LIMITS.paymentTimeout,
    asset: quote.asset.address,
    extra: { name: quote.asset.name, version: quote.asset.version },
  };
}

/**
 * The receipt header of a paid call, in the payment's own version, with the signed receipt as its extension. `settledAt`
 * in seconds.
 */
export function receiptHeaders(
  issuer: Issuer,
  receipt: Record<"chainId" | "settledAt", number> & {
    version: X402Version;
    resourceUrl: string;
    transaction: Hex;
    payer: Address;
    amount: bigint;
  },
): Record<string, string> {
  const { version, chainId, resourceUrl, transaction, payer, amount, settledAt } = receipt;
  const signed = { resourceUrl, payer, transaction, issuedAt: settledAt };
  const signature = sign(issuer, { version: RECEIPT_VERSION, network: networkName(chainId, 2), ...signed });
  const content = {
    success: true,
    transaction,
    network: networkName(chainId, version),
    payer,
    amount: amount.toString(),
    extensions: { "offer-receipt": { info: { receipt: { format: "jws", signature } } } },
  };
  return { [version === 2 ? "PAYMENT-RESPONSE" : "X-PAYMENT-RESPONSE"]: encodeHeader(content) };
}

/** As `@x402/core` does, which takes seven times as long: it joins the text from single characters. */
const encodeHeader = (content: object): string => Buffer.from(JSON.stringify(content)).toString("base64");

/** A refused payment: `reason` goes into the 402's `error`, `message` says what to do next. */
export interface Rejection {
  ok: false;
  reason: RejectionReason;
  message: string;
}

export function reject(reason: RejectionReason, message: string): Rejection {
  return { ok: false, reason, message };
}

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
}

type DecodedPayment = { ok: true; payment: PaymentAuthorization } | Rejection;

const hex = (pattern: RegExp, message: string) =>
  z
    .string()
    .regex(pattern, message)
    .transform((text) => text.toLowerCase() as Hex);
const AddressSchema = hex(/^0x[0-9a-fA-F]{40}$/, "expected an address");

const Uint256Schema = z
  .string()
  .regex(/^[0-9]{1,78}$/, "expected an unsigned integer in decimal digits, as a string")
  .transform((digits) => BigInt(digits))
  .refine((value) => value < 2n ** 256n, "exceeds uint256");

const PayloadSchema = z.object({
  signature: hex(/^0x(?:[0-9a-fA-F]{2})+$/, "expected a signature in hex").refine(
    (text) => text.length <= 2 + 2 * LIMITS.paymentSignatureBytes,
    `exceeds ${LIMITS.paymentSignatureBytes} bytes`,
  ),
  authorization: z.object({
    from: AddressSchema,
    to: AddressSchema,
    value: Uint256Schema,
    validAfter: Uint256Schema,
    validBefore: Uint256Schema,
    nonce: hex(/^0x[0-9a-fA-F]{64}$/, "expected 32 bytes in hex"),
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

const EnvelopeSchema = z.object({
  scheme: z.string().nullish(),
  network: z.string().nullish(),
  accepted: EchoedQuoteSchema.nullish(),
  payload: PayloadSchema,
});

/** The payment in a `PAYMENT-SIGNATURE` (version 2) or `X-PAYMENT` (version 1) header, if any. Never throws. */
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

  const given = (json.value as { x402Version?: unknown } | null)?.x402Version;
  if (given !== version) {
    return reject(
      "invalid_x402_version",
      `x402Version in the ${name} header must be ${version}, but is ${typeof given === "number" ? given : "missing or not a number"}. Send version 2 in PAYMENT-SIGNATURE, version 1 in X-PAYMENT.`,
    );
  }

  const parsed = EnvelopeSchema.safeParse(json.value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const path = issue?.path.map(String).join(".") || "payment";
    return reject(
      "invalid_payload",
      `The payment in ${name} is malformed at ${path}: ${issue?.message ?? "invalid"}.`,
    );
  }

  const { scheme, network, accepted, payload } = parsed.data;
  return {
    ok: true,
    payment: {
      version,
      scheme: scheme ?? accepted?.scheme ?? null,
      network: network ?? accepted?.network ?? null,
      ...payload.authorization,
      signature: payload.signature,
      accepted: accepted ?? null,
    },
  };
}

function parseBase64Json(header: { name: string; value: string }): { ok: true; value: unknown } | Rejection {
  const { name, value } = header;
  if (value.length > LIMITS.paymentHeaderLength) {
    return reject("invalid_payload", `The ${name} header exceeds ${LIMITS.paymentHeaderLength} characters.`);
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

const RECEIPT_VERSION = 1;
/** Turns a 32-byte seed into an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const signingKeys = new WeakMap<object, { kid: string; key: KeyObject }>();

type Issuer = Pick<Config, "masterKey" | "baseUrl">;

/** `extensions` of a 402: the quote as a signed offer. `now` in seconds. */
export function offerExtension(issuer: Issuer, quote: PaymentQuote, now: number) {
  const signature = sign(issuer, {
    version: RECEIPT_VERSION,
    resourceUrl: quote.resourceUrl,
    scheme: "exact",
    network: networkName(quote.chainId, 2),
    asset: quote.asset.address,
    payTo: quote.payTo,
    amount: quote.amount.toString(),
    validUntil: now + LIMITS.paymentTimeout,
  });
  return { "offer-receipt": { info: { offers: [{ format: "jws", acceptIndex: 0, signature }] } } };
}

/** The service's `did:web` document: the current key, and those of former master keys that are still configured. */
export function didDocument({ baseUrl, masterKey, masterKeysOld }: Issuer & Pick<Config, "masterKeysOld">) {
  const id = didOf(baseUrl);
  const verificationMethod = [masterKey, ...masterKeysOld].map((one) => {
    const { kid, key } = keyFrom({ baseUrl, masterKey: one });
    const publicKeyJwk = createPublicKey(key).export({ format: "jwk" });
    return { id: kid, type: "JsonWebKey2020", controller: id, publicKeyJwk };
  });
  return {
    "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
    id,
    verificationMethod,
    assertionMethod: verificationMethod.map(({ id }) => id),
  };
}

/** A JWS in compact form (RFC 7515, section 7.1; RFC 8037), without the worker thread and the promises of a library. */
function sign(issuer: Issuer, payload: object): string {
  let own = signingKeys.get(issuer);
  if (own === undefined) {
    own = keyFrom(issuer);
    signingKeys.set(issuer, own);
  }
  const part = (text: string) => Buffer.from(text).toString("base64url");
  const header = JSON.stringify({ alg: "EdDSA", kid: own.kid });
  const input = `${part(header)}.${part(canonicalize(payload) as string)}`;
  return `${input}.${signBytes(null, Buffer.from(input), own.key).toString("base64url")}`;
}

const didOf = (baseUrl: string): string => `did:web:${encodeURIComponent(new URL(baseUrl).host)}`;

function keyFrom({ baseUrl, masterKey }: Issuer): { kid: string; key: KeyObject } {
  const seed = deriveSecret(masterKey, "working-contracts receipts", []);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  return { kid: `${didOf(baseUrl)}#${masterKeyId(masterKey)}`, key };
}
