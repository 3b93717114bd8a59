/** Secrets at rest: wrapped by the operator's master key, each bound to the place that it is stored for. */
import { createHash } from "node:crypto";
import { CompactEncrypt, compactDecrypt } from "jose";

type Hex = `0x${string}`;

/** The operator's master keys: the one that wraps, and others whose wraps are still read while keys are rotated. */
export interface MasterKeys {
  masterKey: Hex;
  masterKeysOld: readonly Hex[];
}

/** Which master key wrapped a row: lets an operator rotate without trying each. */
export function masterKeyId(masterKey: Hex): string {
  return createHash("sha256")
    .update("working-contracts master key id")
    .update(bytesOf(masterKey))
    .digest("hex")
    .slice(0, 16);
}

/** The place stands in the protected header, so that a row moved to another place does not unwrap. */
export function wrapSecret(
  secret: Uint8Array,
  { masterKey, place }: { masterKey: Hex; place: Record<string, string> },
): Promise<string> {
  return new CompactEncrypt(secret)
    .setProtectedHeader({ alg: "A256GCMKW", enc: "A256GCM", kid: masterKeyId(masterKey), ...place })
    .encrypt(bytesOf(masterKey));
}

/** Throws where the master key is another one, or the wrapped secret belongs to another place. */
export async function unwrapSecret(
  wrapped: string,
  { masterKey, place }: { masterKey: Hex; place: Record<string, string> },
): Promise<Uint8Array> {
  const { plaintext, protectedHeader } = await compactDecrypt(wrapped, bytesOf(masterKey));
  for (const [name, value] of Object.entries(place)) {
    if (protectedHeader[name] !== value) {
      throw new Error(`A wrapped secret stored for ${Object.values(place).join(" ")} belongs elsewhere`);
    }
  }
  return plaintext;
}

/** The key that wrapped a row: the current one where no former one did. */
export function wrappingKey({ masterKey, masterKeysOld }: MasterKeys, id: string): Hex {
  return masterKeysOld.find((key) => masterKeyId(key) === id) ?? masterKey;
}

function bytesOf(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}
