/** Standard Webhooks: secrets, their rotation, and the headers that authenticate a message. */
import { randomBytes } from "node:crypto";
import { and, asc, eq, gt, ne } from "drizzle-orm";
import { Webhook } from "standardwebhooks";
import type { Database } from "../db/client.js";
import { webhook } from "../db/schema.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../master-key.js";

const SECRET_BYTES = 32;

export interface WrappedSecret {
  wrappedSecret: string;
  masterKeyId: string;
}

/** A new secret: in plain text for its owner, and wrapped for storage. */
export async function createSecret(
  webhookId: string,
  { masterKey }: MasterKeys,
): Promise<{ secret: string; stored: WrappedSecret }> {
  const bytes = randomBytes(SECRET_BYTES);
  const wrappedSecret = await wrapSecret(bytes, { masterKey, place: { webhook: webhookId } });
  return {
    secret: textOf(bytes),
    stored: { wrappedSecret, masterKeyId: masterKeyId(masterKey) },
  };
}

/** The secret in plain text, for its owner. */
export async function readSecret(hook: { id: string } & WrappedSecret, keys: MasterKeys): Promise<string> {
  return textOf(await unwrap(hook, keys));
}

function textOf(secret: Uint8Array): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

function unwrap(hook: { id: string } & WrappedSecret, keys: MasterKeys): Promise<Uint8Array> {
  const masterKey = wrappingKey(keys, hook.masterKeyId);
  return unwrapSecret(hook.wrappedSecret, { masterKey, place: { webhook: hook.id } });
}

/** Headers of a message. Retries must pass the same `messageId`. */
export async function signedHeaders(
  hook: { id: string } & WrappedSecret,
  { keys, messageId, body, now }: { keys: MasterKeys; messageId: string; body: string; now: Date },
): Promise<Record<string, string>> {
  const key = await unwrap(hook, keys);
  return {
    "webhook-id": messageId,
    "webhook-timestamp": Math.floor(now.getTime() / 1000).toString(),
    "webhook-signature": new Webhook(key, { format: "raw" }).sign(messageId, now, body),
  };
}

export interface SecretRotation {
  rewrapped: number;
  /** Unchanged rows: wrapped with a master key that was not given, or damaged. */
  failed: string[];
}

const BATCH = 200;

/** Rewraps every webhook's secret with the current master key. Can be stopped and resumed at any time: a row is updated only if it still holds the value that was unwrapped. */
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
