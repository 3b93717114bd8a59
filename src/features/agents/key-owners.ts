/** The owners of API keys, kept in memory for as long as this process is sure to hear of its revocation. */
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Database, Notifications } from "../../db/client.js";
import { apiKey } from "../../db/schema.js";
import { hashKey } from "./api-key.js";

/** Sent with the address by a trigger on `app.api_key`, so that a revocation by hand counts too. */
const KEY_REVOKED = "api_key_revoked";
/** About 3 MB. Beyond it the oldest entry is dropped. */
const MAX_KEPT = 10_000;

export interface KeyOwners {
  /** The address of an active key; null for an unknown or revoked one. Rejects if the database cannot be read. */
  ownerOf(key: string): Promise<Address | null>;
  /** The address of an active key that is in memory; otherwise undefined. */
  keptOwnerOf(key: string): Address | undefined;
}

interface Entry {
  owner: Promise<Address | null>;
  /** Undefined until `owner` has resolved. */
  address?: Address;
}

/**
 * A revocation takes effect when its notification arrives; it reports success only after NOTIFICATION_LEASE_MS, when a
 * process that the notification did not reach has stopped trusting its memory. Concurrent requests share a lookup.
 */
export function createKeyOwners({
  db,
  notifications,
  maxKept = MAX_KEPT,
}: {
  db: Database;
  notifications: Notifications;
  maxKept?: number;
}): KeyOwners {
  const kept = new Map<string, Entry>();
  const query = db
    .select({ address: apiKey.address })
    .from(apiKey)
    .where(and(eq(apiKey.hash, sql.placeholder("hash")), isNull(apiKey.revokedAt)))
    .prepare("api_key_owner");
  const read = async (hash: string): Promise<Address | null> => {
    const [row] = await query.execute({ hash });
    return (row?.address as Address | undefined) ?? null;
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
    ownerOf(key) {
      const hash = hashKey(key);
      if (!notifications.isCurrent()) return read(hash);
      return kept.get(hash)?.owner ?? keep(hash);
    },
    keptOwnerOf: (key) => (notifications.isCurrent() ? kept.get(hashKey(key))?.address : undefined),
  };
}
