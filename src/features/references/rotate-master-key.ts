/** Operator command: rewraps every reference key with the current master key. */
import { and, asc, eq, ne, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../db/client.js";
import { referenceKey } from "../../db/schema.js";
import { type MasterKeys, masterKeyId } from "../../master-key.js";
import { type ReferenceField, unwrapKey, wrapKey } from "./vault.js";

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
