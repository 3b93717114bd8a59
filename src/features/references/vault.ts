/**
 * Encrypted references at rest (docs/rules.md 34): one random key per Working Contract and field, wrapped by the
 * operator's master key. The service stores and serves only the compact JWE, never plain text.
 */
import { randomBytes } from "node:crypto";
import type { Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, ne, sql } from "drizzle-orm";
import { CompactEncrypt } from "jose";
import type { Database, Executor, Transaction } from "../../db/client.js";
import { referenceKey } from "../../db/schema.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../../master-key.js";

export type ReferenceField = "supplementaryMaterials" | "delivery";

export interface ReferencePlace {
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

type ReferenceKeyRow = typeof referenceKey.$inferSelect;

export interface RotationReport {
  rewrapped: number;
  /** Unchanged rows: wrapped with a master key that was not given, or damaged. */
  failed: { contractId: string; field: string; reason: string }[];
}

/**
 * Re-wraps in batches of one transaction each. It can be stopped and resumed at any time, even run twice at
 * once: a row is updated only if it still holds the value that was unwrapped.
 */
export async function rotateMasterKey(
  db: Database,
  keys: MasterKeys,
  { batchSize = 200, onBatch }: { batchSize?: number; onBatch?: (report: RotationReport) => void } = {},
): Promise<RotationReport> {
  const report: RotationReport = { rewrapped: 0, failed: [] };
  let after: ReferenceKeyRow | undefined;
  for (;;) {
    const rows: ReferenceKeyRow[] = await db.transaction(async (tx) => {
      const batch = await readBatch(tx, { current: masterKeyId(keys.masterKey), after, batchSize });
      for (const row of batch) await rewrap(tx, { row, keys, report });
      return batch;
    });
    onBatch?.(report);
    after = rows.at(-1);
    if (rows.length < batchSize) return report;
  }
}

function readBatch(
  tx: Transaction,
  { current, after, batchSize }: { current: string; after: ReferenceKeyRow | undefined; batchSize: number },
): Promise<ReferenceKeyRow[]> {
  const { contractId, field } = referenceKey;
  return tx
    .select()
    .from(referenceKey)
    .where(
      and(
        ne(referenceKey.masterKeyId, current),
        after && sql`(${contractId}, ${field}) > (${after.contractId}, ${after.field})`,
      ),
    )
    .orderBy(asc(contractId), asc(field))
    .limit(batchSize)
    .for("update");
}

async function rewrap(
  tx: Transaction,
  { row, keys, report }: { row: ReferenceKeyRow; keys: MasterKeys; report: RotationReport },
): Promise<void> {
  const { contractId, wrappedKey } = row;
  const place = { contractId, field: row.field as ReferenceField };
  const old = keys.masterKeysOld.find((key) => masterKeyId(key) === row.masterKeyId);
  if (old === undefined) {
    report.failed.push({ ...place, reason: `no master key with the id ${row.masterKeyId} was given` });
    return;
  }
  const key = await unwrapKey(wrappedKey, { ...place, masterKey: old }).catch(() => null);
  if (key === null) {
    report.failed.push({ ...place, reason: "the wrapped key is damaged" });
    return;
  }
  const { masterKey } = keys;
  await tx
    .update(referenceKey)
    .set({ wrappedKey: await wrapKey(key, { ...place, masterKey }), masterKeyId: masterKeyId(masterKey) })
    .where(
      and(
        eq(referenceKey.contractId, contractId),
        eq(referenceKey.field, place.field),
        eq(referenceKey.wrappedKey, wrappedKey),
      ),
    );
  report.rewrapped++;
}
