/**
 * The keys to which others seal deliveries: agents publish and sign them. An agent's key comes from a signature, so there
 * is nothing to keep.
 */

import { hexToBytes } from "@working-contracts/protocol/hex";
import { encryptionKeyText } from "@working-contracts/protocol/signatures";
import type { Address } from "@working-contracts/protocol/types";
import { RefusedToSign } from "./errors.js";
import { call, dataOf, type Session } from "./session.js";
import { secretOf } from "./wallets.js";

/** Turns 32 bytes into an X25519 private key in PKCS #8 (RFC 8410, section 7). */
const PKCS8_PREFIX = "302e020100300506032b656e04220420";

export interface KeyPair {
  /** Public, base64url. */
  key: string;
  /** Private, base64url. */
  secret: string;
}

/** The agent's own keys. Throws RefusedToSign if its wallet signs differently each time, or if WebCrypto has no X25519. */
export async function ownKeysOf({ signer, network }: Session): Promise<KeyPair> {
  const secret = await secretOf(signer, {
    purpose: "Make the key with which I read deliveries on Working Contracts.",
    chainId: network.chainId,
    contract: network.factory as Address,
  });
  const pkcs8 = hexToBytes(`0x${PKCS8_PREFIX}${secret.slice(2)}`);
  const imported = await crypto.subtle
    .importKey("pkcs8", pkcs8, { name: "X25519" }, true, ["deriveBits"])
    .catch((error: Error) => {
      if (error.name !== "NotSupportedError") throw error;
      throw new RefusedToSign("X25519", "WebCrypto has no X25519 here, so deliveries cannot be sealed");
    });
  const { x = "", d = "" } = await crypto.subtle.exportKey("jwk", imported);
  return { key: x, secret: d };
}

/** Publishes the agent's key, unless the service serves it already. Throws RefusedToSign for a contract wallet. */
export async function publishKey(session: Session, { key }: KeyPair): Promise<void> {
  const { signer } = session;
  if (signer.isContract)
    throw new RefusedToSign("wallet", "who seals to a contract wallet cannot check its signature");
  if ((await servedKey(session, signer.address)).key === key) return;
  const signature = await signer.signMessage({ message: keyText(session, signer.address, key) });
  await call(session, "POST /v1/agents/me/encryption-key", { body: { key, signature } });
}

export const servedKey = (session: Session, address: string) =>
  dataOf(call(session, "GET /v1/agents/{address}/encryption-key", { path: { address } }));

export function keyText({ network }: Session, address: string, key: string): string {
  const { domain, chainId } = network;
  return encryptionKeyText({ domain, chainId, address: address as Address, key });
}
