/**
 * Signed offers and receipts (x402 extension `offer-receipt`), with which an agent can prove later what it was quoted and
 * what it paid. The signing key is derived from the master key and published as the service's `did:web` document.
 */
import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import canonicalize from "canonicalize";
import { CompactSign } from "jose";
import type { Config } from "../config.js";
import { deriveSecret, masterKeyId } from "../master-key.js";
import { networkName, type PaymentQuote } from "./x402.js";

const VERSION = 1;
/** Turns a 32-byte seed into an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const text = new TextEncoder();
const keys = new WeakMap<object, { kid: string; key: KeyObject }>();

type Issuer = Pick<Config, "masterKey" | "baseUrl">;

/** `extensions` of a 402: the quote as a signed offer. `now` in seconds. */
export async function offerExtension(issuer: Issuer, quote: PaymentQuote, now: number) {
  const signature = await sign(issuer, {
    version: VERSION,
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

/** `extensions` of a settled payment: the receipt. `now` in seconds. */
export async function receiptExtension(
  issuer: Issuer,
  paid: { chainId: number; resourceUrl: string; payer: Address; transaction: Hex },
  now: number,
) {
  const { chainId, ...payment } = paid;
  const network = networkName(chainId, 2);
  const signature = await sign(issuer, { version: VERSION, network, ...payment, issuedAt: now });
  return { "offer-receipt": { info: { receipt: { format: "jws", signature } } } };
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

async function sign(issuer: Issuer, payload: object): Promise<string> {
  let own = keys.get(issuer);
  if (own === undefined) {
    own = keyFrom(issuer);
    keys.set(issuer, own);
  }
  const jws = new CompactSign(text.encode(canonicalize(payload)));
  return jws.setProtectedHeader({ alg: "EdDSA", kid: own.kid }).sign(own.key);
}

const didOf = (baseUrl: string): string => `did:web:${encodeURIComponent(new URL(baseUrl).host)}`;

function keyFrom({ baseUrl, masterKey }: Issuer): { kid: string; key: KeyObject } {
  const seed = deriveSecret(masterKey, "working-contracts receipts", []);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  return { kid: `${didOf(baseUrl)}#${masterKeyId(masterKey)}`, key };
}
