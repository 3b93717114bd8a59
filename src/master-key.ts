/** Secrets at rest, each wrapped with the operator's master key and bound to the row that stores it. */
import { createHash, hkdfSync } from "node:crypto";
import type { Hex } from "@working-contracts/protocol/types";
import { CompactEncrypt, compactDecrypt } from "jose";

/** The current master key, which wraps, and former ones, which only unwrap during a rotation. */
export interface MasterKeys {
  masterKey: Hex;
  masterKeysOld: readonly Hex[];
}

/** Identifies the master key that wrapped a row, so that a rotation need not try every key. */
export function masterKeyId(masterKey: Hex): string {
  return createHash("sha256")
    .update("working-contracts master key id")
    .update(bytesOf(masterKey))
    .digest("hex")
    .slice(0, 16);
}

/** Wraps a secret. `boundTo` goes into the protected header, so it cannot be unwrapped from another row. */
export function wrapSecret(
  secret: Uint8Array,
  { masterKey, boundTo }: { masterKey: Hex; boundTo: Record<string, string> },
): Promise<string> {
  return new CompactEncrypt(secret)
    .setProtectedHeader({ alg: "A256GCMKW", enc: "A256GCM", kid: masterKeyId(masterKey), ...boundTo })
    .encrypt(bytesOf(masterKey));
}

/** Unwraps a secret. Throws if the master key is wrong or the secret is bound to another row. */
export async function unwrapSecret(
  wrapped: string,
  { masterKey, boundTo }: { masterKey: Hex; boundTo: Record<string, string> },
): Promise<Uint8Array> {
  const { plaintext, protectedHeader } = await compactDecrypt(wrapped, bytesOf(masterKey));
  for (const [name, value] of Object.entries(boundTo)) {
    if (protectedHeader[name] !== value) {
      throw new Error(`A wrapped secret stored for ${Object.values(boundTo).join(" ")} belongs elsewhere`);
    }
  }
  return plaintext;
}

/** Returns the master key with this id, or the current one if no former key has it. */
export function wrappingKey({ masterKey, masterKeysOld }: MasterKeys, id: string): Hex {
  return masterKeysOld.find((key) => masterKeyId(key) === id) ?? masterKey;
}

/** 32 bytes that only the holder of the master key can compute, always the same for the same parts. */
export function deriveSecret(masterKey: Hex, purpose: string, parts: string[]): Uint8Array {
  const salt = createHash("sha256").update(JSON.stringify(parts)).digest();
  return new Uint8Array(hkdfSync("sha256", bytesOf(masterKey), salt, purpose, 32));
}

function bytesOf(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}
