/**
 * One indexer per index. Ponder's own lock does not ensure that: an instance that found the lock taken releases it when
 * it exits, although the holder still runs. Two instances would then undo and repeat each other's work forever.
 */
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { ADVISORY_LOCKS } from "../../db/advisory-locks.js";

const INTERVAL_MS = 2000;
const HEARTBEAT_TIMEOUT_MS = 10_000;

/**
 * Resolves once this process alone may index into `schema`; calls `onWaiting` if it has to wait. Calls `onLost` if the
 * connection fails, because the lock is lost with it. Rejects if the database is unreachable.
 */
export async function takeIndexerLock(
  databaseUrl: string,
  schema: string,
  { onWaiting, onLost }: { onWaiting(): void; onLost(): void },
): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    keepAlive: true,
    connectionTimeoutMillis: HEARTBEAT_TIMEOUT_MS,
    query_timeout: HEARTBEAT_TIMEOUT_MS,
    application_name: "indexer-lock",
  });
  let isLost = false;
  const lose = (): void => {
    if (!isLost) onLost();
    isLost = true;
  };
  client.on("error", lose);
  client.on("end", lose);
  await client.connect();
  const isTaken = async (): Promise<boolean> => {
    const { rows } = await client.query<{ taken: boolean }>(
      "select pg_try_advisory_lock($1, hashtext($2)) as taken",
      [ADVISORY_LOCKS.indexer, schema],
    );
    return rows[0]?.taken === true;
  };
  let waiting = false;
  while (!(await isTaken())) {
    if (!waiting) onWaiting();
    waiting = true;
    await delay(INTERVAL_MS);
  }
  setInterval(() => client.query("select 1").catch(lose), INTERVAL_MS).unref();
}
