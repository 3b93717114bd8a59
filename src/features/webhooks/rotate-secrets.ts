/** Operator command: rewraps every webhook's secret with the current master key. */
import { and, asc, eq, gt, ne } from "drizzle-orm";
import type { Database } from "../../db/client.js";
import { webhook } from "../../db/schema.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../../master-key.js";

export interface SecretRotation {
  rewrapped: number;
  /** Unchanged rows: wrapped with a master key that was not given, or damaged. */
  failed: string[];
}

const BATCH = 200;

/** Can be stopped and resumed at any time: a row is updated only if it still holds the value that was unwrapped. */
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
