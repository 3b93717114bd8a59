/** References at rest (docs/rules.md 34): a random key per contract and field, wrapped by the master key; only JWE is stored. */
import { randomBytes } from "node:crypto";
import type { Hex } from "@working-contracts/protocol/types";
import { and, eq } from "drizzle-orm";
import { CompactEncrypt } from "jose";
import type { Executor } from "../../db/client.js";
import { referenceKey } from "../../db/schema.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../../master-key.js";

interface ReferenceId {
  contractId: string;
  field: "supplementaryMaterials" | ReturnType<typeof deliveryOf>;
}

/** After a reorg another agent can be the Worker, and must not get the key of a former one's delivery. */
export const deliveryOf = (worker: string | null) => `delivery:${worker}` as const;

const KEY_BYTES = 32;

/** Compact JWE (`dir`, `A256GCM`) of a reference under a new key, which the caller stores. */
export async function encryptWithNewKey(
  input: ReferenceId & { masterKey: Hex; reference: string },
): Promise<{ encrypted: string; wrappedKey: string; masterKeyId: string }> {
  const { contractId, field, masterKey } = input;
  const key = randomBytes(KEY_BYTES);
  const [encrypted, wrappedKey] = await Promise.all([
    encryptWith(key, input),
    wrapSecret(key, { masterKey, boundTo: { contractId, field } }),
  ]);
  return { encrypted, wrappedKey, masterKeyId: masterKeyId(masterKey) };
}

/** As {@link encryptWithNewKey}, but under the key that is stored. */
export async function encryptWithStoredKey(
  db: Executor,
  input: ReferenceId & MasterKeys & { reference: string },
): Promise<string> {
  const key = await readReferenceKey(db, input);
  if (key === null) throw new Error(`The ${input.field} key of ${input.contractId} is missing`);
  return encryptWith(key, input);
}

function encryptWith(
  key: Uint8Array,
  { contractId, field, reference }: ReferenceId & { reference: string },
): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(reference))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: `${contractId}#${field}` })
    .encrypt(key);
}

/** The key of one reference, unwrapped; null if nothing was ever encrypted there. Throws on an unknown master key. */
export async function readReferenceKey(
  db: Executor,
  input: ReferenceId & MasterKeys,
): Promise<Uint8Array | null> {
  const { contractId, field } = input;
  const [row] = await db
    .select({ wrappedKey: referenceKey.wrappedKey, masterKeyId: referenceKey.masterKeyId })
    .from(referenceKey)
    .where(and(eq(referenceKey.contractId, contractId), eq(referenceKey.field, field)));
  if (row === undefined) return null;
  const masterKey = wrappingKey(input, row.masterKeyId);
  return unwrapSecret(row.wrappedKey, { masterKey, boundTo: { contractId, field } });
}
