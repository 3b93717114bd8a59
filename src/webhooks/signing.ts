/** Standard Webhooks: secrets, and the headers that authenticate a message. */
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../master-key.js";

const SECRET_BYTES = 32;

export interface WrappedSecret {
  wrappedSecret: string;
  masterKeyId: string;
}

/** A new secret: in plain text for its owner, who sees it once, and wrapped for storage. */
export async function createSecret(
  webhookId: string,
  { masterKey }: MasterKeys,
): Promise<{ secret: string; stored: WrappedSecret }> {
  const bytes = randomBytes(SECRET_BYTES);
  const wrappedSecret = await wrapSecret(bytes, { masterKey, place: { webhook: webhookId } });
  return {
    secret: `whsec_${bytes.toString("base64")}`,
    stored: { wrappedSecret, masterKeyId: masterKeyId(masterKey) },
  };
}

/** Headers of a message. Retries must pass the same `messageId`. */
export async function signedHeaders(
  webhook: { id: string } & WrappedSecret,
  { keys, messageId, body, now }: { keys: MasterKeys; messageId: string; body: string; now: Date },
): Promise<Record<string, string>> {
  const key = await unwrapSecret(webhook.wrappedSecret, {
    masterKey: wrappingKey(keys, webhook.masterKeyId),
    place: { webhook: webhook.id },
  });
  return {
    "webhook-id": messageId,
    "webhook-timestamp": Math.floor(now.getTime() / 1000).toString(),
    "webhook-signature": new Webhook(key, { format: "raw" }).sign(messageId, now, body),
  };
}
