/** Operator's work: wraps every webhook's secret anew under the current master key. */
import { and, asc, eq, gt, ne } from "drizzle-orm";
import type { Database } from "../../db/client.js";
import { webhook } from "../../db/schema.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../../master-key.js";

export interface SecretRotation {
  rewrapped: number;
  /** Left as they were: wrapped by a master key that was not given, or damaged. */
  failed: string[];
}

const BATCH = 200;

/** Can be stopped at any moment and run again: a row is changed only as long as it holds what was unwrapped. */
export async function rotateWebhookSecrets(db: Database, keys: MasterKeys): Promise<SecretRotation> {
  const { masterKey } = keys;
  const report: SecretRotation = { rewrapped: 0, failed: [] };
  for (let after = ""; ; ) {
    const rows = await db
      .select({ id: webhook.id, wrapped: webhook.wrappedSecret, by: webhook.masterKeyId })
      .from(webhook)
      .where(and(ne(webhook.masterKeyId, masterKeyId(masterKey)), gt(webhook.id, after)))
      .orderBy(asc(webhook.id))
      .limit(BATCH);
    for (const { id, wrapped, by } of rows) {
      const place = { webhook: id };
      const secret = await unwrapSecret(wrapped, { masterKey: wrappingKey(keys, by), place }).catch(
        () => null,
      );
      if (secret === null) {
        report.failed.push(id);
        continue;
      }
      await db
        .update(webhook)
        .set({
          wrappedSecret: await wrapSecret(secret, { masterKey, place }),
          masterKeyId: masterKeyId(masterKey),
        })
        .where(and(eq(webhook.id, id), eq(webhook.wrappedSecret, wrapped)));
      report.rewrapped += 1;
    }
    after = rows.at(-1)?.id ?? "";
    if (rows.length < BATCH) return report;
  }
}
