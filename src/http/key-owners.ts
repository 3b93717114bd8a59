/** API keys (docs/rules.md 6). Only hashes are stored; owners are kept in memory while revocations are heard. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Database, Notifications } from "../db/client.js";
import { apiKey } from "../db/schema.js";

type KeyEnvironment = "live" | "test";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 62^43 > 2^256 and 62^6 > 2^32. */
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const KEY_PATTERN = /^wc_(live|test)_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

/** A new key in plain text and its hash; only the hash is stored. The secret must be 32 bytes that no one can guess. */
export function createKey(
  environment: KeyEnvironment,
  secret: Uint8Array = randomBytes(32),
): { apiKey: string; hash: string } {
  const body = `wc_${environment}_${base62(secret, SECRET_LENGTH)}`;
  const apiKey = body + checksum(body);
  return { apiKey, hash: hashKey(apiKey) };
}

/** Whether `text` is a key of this environment by form and checksum: no typing error reaches the database. */
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

/** Sent with the address by a trigger on `app.api_key`, so that a revocation by hand counts too. */
const KEY_REVOKED = "api_key_revoked";
/** About 3 MB. Beyond it the oldest entry is dropped. */
const MAX_KEPT = 10_000;

export type KeyOwners = ReturnType<typeof createKeyOwners>;

interface Entry {
  owner: Promise<Address | null>;
  /** Undefined until `owner` has resolved. */
  address?: Address;
}

/** Revocations arrive by notification; see docs/decisions.md, "API keys in memory". Concurrent requests share a lookup. */
export function createKeyOwners(db: Database, notifications: Notifications, maxKept = MAX_KEPT) {
  const kept = new Map<string, Entry>();
  const query = db
    .select({ address: apiKey.address })
    .from(apiKey)
    .where(and(eq(apiKey.hash, sql.placeholder("hash")), isNull(apiKey.revokedAt)))
    .prepare("api_key_owner");
  const read = async (hash: string): Promise<Address | null> => {
    const [row] = await query.execute({ hash });
    return row?.address ?? null;
  };

  const keep = (hash: string): Promise<Address | null> => {
    const entry: Entry = { owner: read(hash) };
    kept.set(hash, entry);
    for (const oldest of kept.keys()) {
      if (kept.size <= maxKept) break;
      kept.delete(oldest);
    }
    const settle = (address: Address | null): void => {
      if (address !== null) entry.address = address;
      else if (kept.get(hash) === entry) kept.delete(hash);
    };
    entry.owner.then(settle, () => settle(null));
    return entry.owner;
  };

  notifications.listen(KEY_REVOKED, {
    onNotification(address) {
      // A pending lookup can have read the key before it was revoked.
      for (const [hash, entry] of kept) {
        if (entry.address === undefined || entry.address === address) kept.delete(hash);
      }
    },
    onListening: () => kept.clear(),
    onLost: () => kept.clear(),
  });

  return {
    /** The address of an active key; null for an unknown or revoked one. Rejects if the database cannot be read. */
    ownerOf(key: string): Promise<Address | null> {
      const hash = hashKey(key);
      if (!notifications.isCurrent()) return read(hash);
      return kept.get(hash)?.owner ?? keep(hash);
    },
    /** The address of an active key that is in memory; otherwise undefined. */
    keptOwnerOf: (key: string) => (notifications.isCurrent() ? kept.get(hashKey(key))?.address : undefined),
  };
}
