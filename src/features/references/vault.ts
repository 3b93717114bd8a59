/**
 * Encrypted references at rest (docs/rules.md 34): one random key per Working Contract and field, wrapped by the
 * operator's master key. The service stores and serves only the compact JWE, never plain text.
 */
import { randomBytes } from "node:crypto";
import type { Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, ne, sql } from "drizzle-orm";
import { CompactEncrypt } from "jose";
import type { Database, Executor } from "../../db/client.js";
import { referenceKey } from "../../db/schema.js";
import {
  type MasterKeys,
  masterKeyId,
  type Rotation,
  rotate,
  unwrapSecret,
  type Wrapped,
  wrappingKey,
  wrapSecret,
} from "../../master-key.js";

export type ReferenceField = "supplementaryMaterials" | "delivery";

interface ReferencePlace {
  contractId: string;
  field: ReferenceField;
}

const KEY_BYTES = 32;

/** Compact JWE (`dir`, `A256GCM`) of a reference under its own key, which is created and stored if there is none. */
export async function encryptReference(
  db: Executor,
  input: ReferencePlace & MasterKeys & { reference: string },
): Promise<string> {
  return encryptWith(await ensureReferenceKey(db, input), input);
}

/** As {@link encryptReference}, but the caller stores the new key. */
export async function sealReference(
  input: ReferencePlace & { masterKey: Hex; reference: string },
): Promise<{ encrypted: string; wrappedKey: string; masterKeyId: string }> {
  const key = randomBytes(KEY_BYTES);
  const [encrypted, wrappedKey] = await Promise.all([encryptWith(key, input), wrapKey(key, input)]);
  return { encrypted, wrappedKey, masterKeyId: masterKeyId(input.masterKey) };
}

function encryptWith(
  key: Uint8Array,
  { contractId, field, reference }: ReferencePlace & { reference: string },
): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode(reference))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: `${contractId}#${field}` })
    .encrypt(key);
}

/** The key of one reference, unwrapped; null if nothing was ever encrypted there. Throws on an unknown master key. */
export async function readReferenceKey(
  db: Executor,
  input: ReferencePlace & MasterKeys,
): Promise<Uint8Array | null> {
  const [row] = await db
    .select({ wrappedKey: referenceKey.wrappedKey, masterKeyId: referenceKey.masterKeyId })
    .from(referenceKey)
    .where(and(eq(referenceKey.contractId, input.contractId), eq(referenceKey.field, input.field)));
  if (row === undefined) return null;
  return unwrapKey(row.wrappedKey, { ...input, masterKey: wrappingKey(input, row.masterKeyId) });
}

async function ensureReferenceKey(db: Executor, input: ReferencePlace & MasterKeys): Promise<Uint8Array> {
  const { contractId, field, masterKey } = input;
  const key = randomBytes(KEY_BYTES);
  const wrappedKey = await wrapKey(key, input);
  const inserted = await db
    .insert(referenceKey)
    .values({ contractId, field, wrappedKey, masterKeyId: masterKeyId(masterKey) })
    .onConflictDoNothing()
    .returning({ field: referenceKey.field });
  if (inserted.length > 0) return key;
  const existing = await readReferenceKey(db, input);
  if (existing === null) throw new Error(`The ${field} key of ${contractId} vanished`);
  return existing;
}

export function wrapKey(
  key: Uint8Array,
  { contractId, field, masterKey }: ReferencePlace & { masterKey: Hex },
): Promise<string> {
  return wrapSecret(key, { masterKey, place: { contractId, field } });
}

/** Throws for another master key, and for a wrapped key of another contract or field. */
export function unwrapKey(
  wrapped: string,
  { contractId, field, masterKey }: ReferencePlace & { masterKey: Hex },
): Promise<Uint8Array> {
  return unwrapSecret(wrapped, { masterKey, place: { contractId, field } });
}

/** Rewraps every key of a reference; see {@link rotate}. */
export function rotateReferenceKeys(
  db: Database,
  keys: MasterKeys,
  { batchSize = 200, onBatch }: { batchSize?: number; onBatch?: (rotation: Rotation) => void } = {},
): Promise<Rotation> {
  const { contractId, field, wrappedKey } = referenceKey;
  return rotate<Wrapped & { place: { contractId: string; field: string } }>(keys, {
    onBatch,
    async read(after) {
      const isOld = ne(referenceKey.masterKeyId, masterKeyId(keys.masterKey));
      const isNext =
        after && sql`(${contractId}, ${field}) > (${after.place.contractId}, ${after.place.field})`;
      const rows = await db
        .select()
        .from(referenceKey)
        .where(and(isOld, isNext))
        .orderBy(asc(contractId), asc(field))
        .limit(batchSize);
      return rows.map((row) => ({
        name: `${row.contractId} ${row.field}`,
        place: { contractId: row.contractId, field: row.field },
        wrapped: row.wrappedKey,
        masterKeyId: row.masterKeyId,
      }));
    },
    async store({ place, wrapped }, next) {
      const isSame = and(eq(contractId, place.contractId), eq(field, place.field), eq(wrappedKey, wrapped));
      const { rowCount } = await db
        .update(referenceKey)
        .set({ wrappedKey: next.wrapped, masterKeyId: next.masterKeyId })
        .where(isSame);
      return rowCount === 1;
    },
  });
}
