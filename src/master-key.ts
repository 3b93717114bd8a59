/** Secrets at rest, each wrapped with the operator's master key and bound to its place of storage. */
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

/** Wraps a secret. `place` goes into the protected header, so a row moved to another place cannot be unwrapped. */
export function wrapSecret(
  secret: Uint8Array,
  { masterKey, place }: { masterKey: Hex; place: Record<string, string> },
): Promise<string> {
  return new CompactEncrypt(secret)
    .setProtectedHeader({ alg: "A256GCMKW", enc: "A256GCM", kid: masterKeyId(masterKey), ...place })
    .encrypt(bytesOf(masterKey));
}

/** Unwraps a secret. Throws if the master key is wrong or the secret belongs to another place. */
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

/** Returns the master key with this id, or the current one if no former key has it. */
export function wrappingKey({ masterKey, masterKeysOld }: MasterKeys, id: string): Hex {
  return masterKeysOld.find((key) => masterKeyId(key) === id) ?? masterKey;
}

/** 32 bytes that only the holder of the master key can compute, always the same for the same parts. */
export function deriveSecret(masterKey: Hex, purpose: string, parts: string[]): Uint8Array {
  const salt = createHash("sha256").update(JSON.stringify(parts)).digest();
  return new Uint8Array(hkdfSync("sha256", bytesOf(masterKey), salt, purpose, 32));
}

/** A stored secret, and how errors name it. */
export interface Wrapped {
  name: string;
  place: Record<string, string>;
  wrapped: string;
  masterKeyId: string;
}

export interface Rotation {
  rewrapped: number;
  /** Secrets that stay as they are, with the reason. */
  failed: string[];
}

/**
 * Rewraps with the current master key what `read` returns, in ascending order after the given one, until there is no
 * more. It can be stopped, resumed and run twice at once: `store` changes only what still holds the wrapped value that
 * was read, and returns whether it did.
 */
export async function rotate<Stored extends Wrapped>(
  { masterKey, masterKeysOld }: MasterKeys,
  {
    read,
    store,
    onBatch,
  }: {
    read(after: Stored | undefined): Promise<Stored[]>;
    store(stored: Stored, next: Pick<Wrapped, "wrapped" | "masterKeyId">): Promise<boolean>;
    onBatch?: ((rotation: Rotation) => void) | undefined;
  },
): Promise<Rotation> {
  const rotation: Rotation = { rewrapped: 0, failed: [] };
  const next = masterKeyId(masterKey);
  for (let batch = await read(undefined); batch.length > 0; batch = await read(batch.at(-1))) {
    for (const stored of batch) {
      const { name, place, wrapped } = stored;
      const old = masterKeysOld.find((key) => masterKeyId(key) === stored.masterKeyId);
      const secret = old && (await unwrapSecret(wrapped, { masterKey: old, place }).catch(() => null));
      if (old === undefined)
        rotation.failed.push(`${name}: no master key with the id ${stored.masterKeyId} was given`);
      else if (!secret) rotation.failed.push(`${name}: the wrapped key is damaged`);
      else if (
        await store(stored, { wrapped: await wrapSecret(secret, { masterKey, place }), masterKeyId: next })
      )
        rotation.rewrapped++;
    }
    onBatch?.(rotation);
  }
  return rotation;
}

function bytesOf(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}
