/**
 * References that the service cannot read: encrypted to keys that agents publish and sign, in standard formats (JWE,
 * RFC 7516, ECDH-ES on X25519).
 */
import { REFERENCE_LENGTH } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import {
  base64url,
  CompactEncrypt,
  compactDecrypt,
  decodeProtectedHeader,
  GeneralEncrypt,
  type GeneralJWE,
  generalDecrypt,
  importJWK,
} from "jose";
import { verifyMessage } from "viem/utils";
import { RefusedToSign } from "./errors.js";
import type { Session } from "./session.js";
import type { ReferenceKey } from "./types.js";
import { type KeyPair, keyText, servedKey } from "./wallets.js";

const ALG = "ECDH-ES+A256KW";
const TYPE = "wc-sealed";
/** The agent's published key; null if there is none. Throws RefusedToSign if the agent did not sign the one that is shown. */
export async function publishedKey(session: Session, address: string): Promise<string | null> {
  const { key, signature } = await servedKey(session, address);
  if (key === null) return null;
  const message = keyText(session, address, key);
  const claim = { address: address as Address, message, signature: signature as Hex };
  if (await verifyMessage(claim)) return key;
  throw new RefusedToSign(
    "key",
    `the service shows an encryption key that ${address} did not sign; \`seal: false\` lets the service read the delivery`,
  );
}

export interface Recipient {
  address: string;
  key: string;
}

/**
 * Encrypts a reference to several recipients (JWE, JSON serialization). Its header commits to the plain text, so everyone
 * who is ever shown it can tell that it is what was delivered. Throws RangeError if the reference is too long.
 */
export async function seal(reference: string, recipients: readonly Recipient[]): Promise<string> {
  const nonce = base64url.encode(crypto.getRandomValues(new Uint8Array(16)));
  const plain = new TextEncoder().encode(JSON.stringify({ reference, nonce }));
  const jwe = new GeneralEncrypt(plain).setProtectedHeader({
    enc: "A256GCM",
    typ: TYPE,
    sha256: await digestOf(plain),
  });
  for (const { address, key } of recipients)
    jwe.addRecipient(await imported({ key })).setUnprotectedHeader({ alg: ALG, kid: address.toLowerCase() });
  const sealed = JSON.stringify(await jwe.encrypt());
  if (sealed.length <= REFERENCE_LENGTH) return sealed;
  throw new RangeError("The reference is too long to be sealed: deliver a hash or URI of it");
}

/** The sealed reference in a text, if it is one. */
export function parseSealed(text: string): GeneralJWE | null {
  if (!text.startsWith("{")) return null;
  try {
    const jwe = JSON.parse(text) as GeneralJWE;
    return decodeProtectedHeader(jwe).typ === TYPE ? jwe : null;
  } catch {
    return null;
  }
}

/** The plain text of a sealed reference; null if `address` is none of its recipients. Throws if it cannot be decrypted. */
export async function plainTextOf(
  jwe: GeneralJWE,
  { address, keys }: { address: string; keys: KeyPair },
): Promise<Uint8Array | null> {
  const own = jwe.recipients.find(({ header }) => header?.kid === address.toLowerCase());
  if (own === undefined) return null;
  return (await generalDecrypt({ ...jwe, recipients: [own] }, await imported(keys))).plaintext;
}

/** The reference in a plain text. Throws unless the sealed reference commits to it. */
export async function referenceIn(plain: Uint8Array, jwe: GeneralJWE): Promise<string> {
  if ((await digestOf(plain)) !== decodeProtectedHeader(jwe).sha256)
    throw new Error("This is not the reference that was delivered");
  return (JSON.parse(new TextDecoder().decode(plain)) as { reference: string }).reference;
}

/** Encrypts the plain text of a sealed reference for one more reader (compact JWE). */
export async function shareWith(key: string, plain: Uint8Array): Promise<string> {
  const jwe = new CompactEncrypt(plain).setProtectedHeader({ alg: ALG, enc: "A256GCM" });
  return jwe.encrypt(await imported({ key }));
}

/** The plain text in a share. Throws if it was not encrypted to this key. */
export async function openShare(jwe: string, keys: KeyPair): Promise<Uint8Array> {
  return (await compactDecrypt(jwe, await imported(keys))).plaintext;
}

/** With `secret` to decrypt, without it to encrypt. */
const imported = ({ key, secret }: { key: string; secret?: string }) =>
  importJWK({ kty: "OKP", crv: "X25519", x: key, ...(secret !== undefined && { d: secret }) }, ALG);

async function digestOf(bytes: Uint8Array): Promise<string> {
  return base64url.encode(
    new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)),
  );
}

/** Decrypts a compact JWE (`dir`, `A256GCM`). Throws if the key belongs to another reference or the text was modified. */
export async function openReference(jwe: string, key: ReferenceKey): Promise<string> {
  const { kid } = decodeProtectedHeader(jwe);
  if (kid !== key.kid) throw new Error(`The key ${key.kid} does not decrypt ${kid}`);
  const { plaintext } = await compactDecrypt(jwe, await importJWK({ ...key }));
  return new TextDecoder().decode(plaintext);
}
