/** Public keys to which others seal references that the service cannot read. */
import type { Address } from "./types.js";

/** The text with which an agent signs its X25519 key (RFC 7748; base64url), so that the service cannot serve another. */
export function encryptionKeyText({
  domain,
  chainId,
  address,
  key,
}: {
  domain: string;
  chainId: number;
  address: Address;
  key: string;
}): string {
  return [
    `${domain} asks you to publish the key to which others encrypt what they deliver to you:`,
    address.toLowerCase(),
    "",
    "Signing moves no money and costs no gas.",
    "",
    `Chain ID: ${chainId}`,
    `Key: X25519 ${key}`,
  ].join("\n");
}
