import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";

/** How long a read waits for the replica. After that, the primary answers. */
const PATIENCE_MS = 100;
const LOOK_EVERY_MS = 5;
/** How long an unreachable replica is left alone. */
const PAUSE_MS = 5_000;
/** Ends a query on the replica that the primary can answer: a conflict with recovery, or a shutdown. */
const REPLICA_FAULTS = /^(40001|57P0)/;

/**
 * Queries go to `replica` once it has replayed the write-ahead log up to the primary's position at their beginning, and
 * to `primary` while it is behind or unreachable. So every caller sees its own writes, whichever process stored them.
 * Queries that begin together ask for the position once.
 */
export function readsFrom(replica: pg.Pool, primary: pg.Pool): pg.Pool {
  let leftAloneUntil = 0;
  let runningCheck: Promise<unknown> = Promise.resolve();
  let nextCheck: Promise<boolean> | undefined;

  const catchesUp = async (): Promise<boolean> => {
    if (performance.now() < leftAloneUntil) return false;
    const { rows } = await primary.query<{ position: string }>(
      "select pg_current_wal_insert_lsn() as position",
    );
    const until = performance.now() + PATIENCE_MS;
    try {
      while (performance.now() < until) {
        const text = `select pg_last_wal_replay_lsn() >= $1::pg_lsn as replayed, pg_is_in_recovery() as follows`;
        const asked = replica.query<{ replayed: boolean; follows: boolean }>(text, [rows[0]?.position]);
        const { rows: answers } = await Promise.race([asked, silence()]);
        if (answers[0]?.follows === false) throw new Error("The replica has become a primary.");
        if (answers[0]?.replayed === true) return true;
        await delay(LOOK_EVERY_MS);
      }
    } catch {
      leftAloneUntil = performance.now() + PAUSE_MS;
    }
    return false;
  };

  const choose = async (): Promise<pg.Pool> => {
    // A running check can have read the position before a write that this query must see: the query joins the next check.
    nextCheck ??= runningCheck.then(() => {
      nextCheck = undefined;
      const answer = catchesUp();
      runningCheck = answer.catch(() => {});
      return answer;
    });
    return (await nextCheck) ? replica : primary;
  };

  const pool = {
    async query(...query: [pg.QueryConfig, unknown[]?]) {
      const chosen = await choose();
      return chosen.query(...query).catch((error: Error) => {
        const isFaulty = !(error instanceof pg.DatabaseError) || REPLICA_FAULTS.test(error.code ?? "");
        if (chosen === primary || !isFaulty) throw error;
        return primary.query(...query);
      });
    },
    connect: async () => (await choose()).connect(),
  };
  return pool as unknown as pg.Pool;
}

/** Rejects after {@link PATIENCE_MS}: a host that is gone lets a query hang for many seconds. */
async function silence(): Promise<never> {
  await delay(PATIENCE_MS, undefined, { ref: false });
  throw new Error("The replica does not respond.");
}
