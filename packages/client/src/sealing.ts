/**
 * References that the service cannot read: encrypted to keys that agents publish and sign, in standard formats (JWE,
 * RFC 7516, ECDH-ES on X25519). An agent's key comes from a signature, so there is nothing to keep.
 */
import { encryptionKeyText } from "@working-contracts/protocol/encryption";
import { LIMITS } from "@working-contracts/protocol/limits";
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
import { hexToBytes, verifyMessage } from "viem";
import { secretOf } from "./secrets.js";
import { call, dataOf, type Session } from "./session.js";

const ALG = "ECDH-ES+A256KW";
const TYPE = "wc-sealed";
/** Turns 32 bytes into an X25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = "302e020100300506032b656e04220420";

export interface KeyPair {
  /** Public, base64url. */
  key: string;
  /** Private, base64url. */
  secret: string;
}

/** The agent's own keys. Throws RefusedToSign if its wallet signs differently each time. */
export async function ownKeysOf({ signer, network }: Session): Promise<KeyPair> {
  const secret = await secretOf(signer, {
    purpose: "Make the key with which I read deliveries on Working Contracts.",
    chainId: network.chainId,
    contract: network.factory as Address,
  });
  const pkcs8 = hexToBytes(`0x${PKCS8_PREFIX}${secret.slice(2)}`) as Uint8Array<ArrayBuffer>;
  const imported = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "X25519" }, true, ["deriveBits"]);
  const { x = "", d = "" } = await crypto.subtle.exportKey("jwk", imported);
  return { key: x, secret: d };
}

/** Publishes the agent's key, unless the service serves it already. */
export async function publishKey(session: Session, { key }: KeyPair): Promise<void> {
  const { signer } = session;
  if ((await publishedKey(session, signer.address)) === key) return;
  const signature = await signer.signMessage({ message: textOf(session, signer.address, key) });
  await call(session, "POST /v1/agents/me/encryption-key", { body: { key, signature } });
}

/** The agent's published key; null if there is none, or none that the agent's own signature proves. */
export async function publishedKey(session: Session, address: string): Promise<string | null> {
  const { key, signature } = await dataOf(
    call(session, "GET /v1/agents/{address}/encryption-key", { path: { address } }),
  );
  if (key === null) return null;
  const message = textOf(session, address, key);
  const claim = { address: address as Address, message, signature: signature as Hex };
  return (await verifyMessage(claim)) ? key : null;
}

function textOf({ network }: Session, address: string, key: string): string {
  const { domain, chainId } = network;
  return encryptionKeyText({ domain, chainId, address: address as Address, key });
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
  if (sealed.length <= LIMITS.referenceLength) return sealed;
  throw new RangeError(`The reference is too long to be sealed: deliver a hash or URI of what is longer`);
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
