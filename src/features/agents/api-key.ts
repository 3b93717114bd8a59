/**
 * API keys: `wc_live_` or `wc_test_`, 32 random bytes in base62, and a checksum in base62. Only hashes are stored.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

export type KeyEnvironment = "live" | "test";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256 and 62^6 > 2^32. */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const KEY_PATTERN = /^wc_(live|test)_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

/** A new key in plain text, and its hash; only the hash is stored. The secret must have 32 bytes that no one can guess. */
export function createKey(
  environment: KeyEnvironment,
  secret: Uint8Array = randomBytes(32),
): { apiKey: string; hash: string } {
  const body = `wc_${environment}_${base62(secret, SECRET_LENGTH)}`;
  const apiKey = body + checksum(body);
  return { apiKey, hash: hashKey(apiKey) };
}

/**
 * Whether `text` has the form of a key of this environment, checksum included. Typing errors, truncated pastes and
 * random guesses never reach the database.
 */
export function isWellFormedKey(text: string, environment: KeyEnvironment): boolean {
  const match = KEY_PATTERN.exec(text);
  if (match === null || match[1] !== environment) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return timingSafeEqual(Buffer.from(checksum(body)), Buffer.from(text.slice(-CHECKSUM_LENGTH)));
}

/** SHA-256 in hex. A key has 256 random bits, so a plain hash cannot be reversed by search. */
export function hashKey(apiKey: string): string {
  return createHash("sha256").update(apiKey).digest("hex");
}

function checksum(body: string): string {
  return base62(createHash("sha256").update(`checksum:${body}`).digest().subarray(0, 4), CHECKSUM_LENGTH);
}

function base62(bytes: Uint8Array, length: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (let i = 0; i < length; i++) {
    text = ALPHABET[Number(rest % 62n)] + text;
    rest /= 62n;
  }
  return text;
}

/** A key has 57 characters; nothing longer is worth a hash. */
const BEARER = /^Bearer +(\S{57}) *$/i;

/** The key in an `Authorization` header; null if nothing there is as long as a key. */
export function bearerKey(header: string): string | null {
  return BEARER.exec(header)?.[1] ?? null;
}
