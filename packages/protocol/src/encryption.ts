/** Public keys to which others seal references that the service cannot read. */
import type { Address } from "./types.js";

/** A P-256 public key (RFC 7518, 6.2); coordinates in base64url. */
export interface PublicKey {
  x: string;
  y: string;
}

/** The text with which an agent signs its key, so that the service cannot serve another one. */
export function encryptionKeyText({
  domain,
  chainId,
  address,
  key: { x, y },
}: {
  domain: string;
  chainId: number;
  address: Address;
  key: PublicKey;
}): string {
  return [
    `${domain} asks you to publish the key to which others encrypt what they deliver to you:`,
    address.toLowerCase(),
    "",
    "Signing moves no money and costs no gas.",
    "",
    `Chain ID: ${chainId}`,
    `Key: P-256 ${x} ${y}`,
  ].join("\n");
}
