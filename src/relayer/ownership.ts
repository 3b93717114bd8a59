/**
 * Ensures one owner per signer. A Postgres advisory lock on a dedicated connection elects the owner, and every write
 * checks the owner's epoch. A process that lost its lock while suspended fails that check, because its successor raised
 * the epoch.
 */

import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import pg from "pg";
import { ADVISORY_LOCKS } from "../db/advisory-locks.js";
import type { Database, Transaction } from "../db/client.js";

const HEARTBEAT_MS = 1000;
const HEARTBEAT_TIMEOUT_MS = 5000;
/** Maximum time an owner that stalls in the middle of a write can block its successor. */
const WRITE_IDLE_TIMEOUT = "10s";

/** Another process now owns the signer. The write was rolled back. */
export class OwnershipLost extends Error {
  override readonly name = "OwnershipLost";
}

export interface Ownership {
  epoch: bigint;
  /** Aborts when the lock's connection fails. */
  lost: AbortSignal;
  release(): Promise<void>;
}

/** Takes ownership of the signer. Returns null if another process owns it; rejects if the database is unreachable. */
export async function takeOwnership(pool: pg.Pool, signer: Address): Promise<Ownership | null> {
  if (await isOwned(pool, signer)) return null;
  const client = new pg.Client({
    ...pool.options,
    keepAlive: true,
    query_timeout: HEARTBEAT_TIMEOUT_MS,
    application_name: "relayer-lock",
  });
  const lost = new AbortController();
  client.on("error", () => lost.abort());
  client.on("end", () => lost.abort());
  const close = () => client.end().catch(() => undefined);
  try {
    await client.connect();
    const locked = await client.query<{ taken: boolean }>(
      "select pg_try_advisory_lock($1, hashtext($2)) as taken",
      [ADVISORY_LOCKS.signer, signer],
    );
    if (locked.rows[0]?.taken !== true) {
      await close();
      return null;
    }
    // Can wait for the previous owner's last write, and so can time out.
    const taken = await client.query<{ epoch: string }>({
      text: `insert into app.signer_epoch as current (signer, epoch) values ($1, 1)
        on conflict (signer) do update set epoch = current.epoch + 1, taken_at = now() returning epoch`,
      values: [signer],
    });
    const heartbeat = setInterval(() => {
      client.query("select 1").catch(() => lost.abort());
    }, HEARTBEAT_MS).unref();
    lost.signal.addEventListener("abort", () => {
      clearInterval(heartbeat);
      void close();
    });
    return {
      epoch: BigInt(taken.rows[0]?.epoch ?? 0),
      lost: lost.signal,
      async release() {
        clearInterval(heartbeat);
        await close();
      },
    };
  } catch (error) {
    void close();
    throw error;
  }
}

/** Uses the pool: a process waiting for a signer would otherwise open a connection every second. */
async function isOwned(pool: pg.Pool, signer: Address): Promise<boolean> {
  const { rows } = await pool.query<{ owned: boolean }>(
    `select exists (
      select 1 from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
        and database = (select oid from pg_database where datname = current_database())
        and classid = $1::int::oid and objid = hashtext($2)::oid) as owned`,
    [ADVISORY_LOCKS.signer, signer],
  );
  return rows[0]?.owned === true;
}

/** Runs one write as the signer's owner. Throws {@link OwnershipLost}, without writing, if ownership was lost. */
export function fenced<T>(
  { db, signer, epoch }: { db: Database; signer: Address; epoch: bigint },
  write: (tx: Transaction) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    // The share lock delays a successor's epoch until this write commits or rolls back.
    const { rows } = await tx.execute(sql`
      select set_config('idle_in_transaction_session_timeout', ${WRITE_IDLE_TIMEOUT}, true)
      from (select 1 from app.signer_epoch where signer = ${signer} and epoch = ${epoch.toString()}::bigint for share) mine`);
    if (rows.length === 0) throw new OwnershipLost(`epoch ${epoch} of ${signer} has passed`);
    return write(tx);
  });
}
