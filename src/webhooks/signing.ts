/** Standard Webhooks: secrets, and the headers that authenticate a message. */
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { type MasterKeys, masterKeyId, unwrapSecret, wrappingKey, wrapSecret } from "../master-key.js";

const SECRET_BYTES = 32;

interface WrappedSecret {
  wrappedSecret: string;
  masterKeyId: string;
}

/** A new secret: in plain text for its owner, and wrapped for storage. */
export async function createSecret(
  webhookId: string,
  { masterKey }: MasterKeys,
): Promise<{ secret: string; stored: WrappedSecret }> {
  const bytes = randomBytes(SECRET_BYTES);
  const wrappedSecret = await wrapSecret(bytes, { masterKey, boundTo: { webhook: webhookId } });
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
  return unwrapSecret(hook.wrappedSecret, { masterKey, boundTo: { webhook: hook.id } });
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
