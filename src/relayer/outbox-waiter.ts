/** Waits for operations: a notification wakes them, and a poll in case one is lost. */
import { inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import type pg from "pg";
import type { Notifications } from "../db/notifications.js";
import { operation } from "../db/schema.js";

export type OperationRow = typeof operation.$inferSelect;

/** Postgres channel; the payload is a comma-separated list of operation ids. */
export const OPERATION_DONE = "operation_done";

/** Ids per query. */
const MAX_IDS = 1000;
const DONE: ReadonlySet<string> = new Set(["mined", "final", "rejected"]);

export interface OutboxWaiter {
  /** Resolves to the operation once it is mined, final or rejected; to null after `timeoutMs` or on abort. */
  waitFor(
    id: bigint,
    options: {
      timeoutMs: number;
      signal?: AbortSignal | undefined;
      /** Whether it was stored just now: then only its notification, or a later poll, can find it done. */
      isNew?: boolean;
    },
  ): Promise<OperationRow | null>;
  /** Resolves all waits with null. */
  stop(): void;
}

type Resolve = (row: OperationRow | null) => void;

export function createOutboxWaiter({
  pool,
  notifications,
  pollIntervalMs = 1000,
}: {
  pool: pg.Pool;
  notifications: Notifications;
  pollIntervalMs?: number;
}): OutboxWaiter {
  const db = drizzle(pool, { casing: "snake_case" });
  const waiting = new Map<bigint, Set<Resolve>>();
  /** Ids not looked up yet: their operation might have finished before the wait began. */
  const fresh = new Set<bigint>();
  let freshScheduled = false;
  let polling = false;
  let stopped = false;

  const settle = (row: OperationRow): void => {
    if (!DONE.has(row.state)) return;
    for (const resolve of waiting.get(row.id) ?? []) resolve(row);
  };

  /** Waiters keep waiting if the database does not respond; the next poll retries. */
  const look = async (ids: bigint[]): Promise<void> => {
    for (let start = 0; start < ids.length; start += MAX_IDS) {
      const rows = await db
        .select()
        .from(operation)
        .where(inArray(operation.id, ids.slice(start, start + MAX_IDS)))
        .catch(() => []);
      for (const row of rows) settle(row);
    }
  };

  const lookAtFresh = (): void => {
    if (freshScheduled) return;
    freshScheduled = true;
    setImmediate(() => {
      freshScheduled = false;
      const ids = [...fresh];
      fresh.clear();
      void look(ids);
    });
  };

  const poll = setInterval(() => {
    if (polling || waiting.size === 0) return;
    polling = true;
    void look([...waiting.keys()]).finally(() => {
      polling = false;
    });
  }, pollIntervalMs).unref();

  const unlisten = notifications.listen(OPERATION_DONE, {
    onNotification(payload) {
      const ids = payload.split(",").filter(Boolean).map(BigInt);
      void look(ids.filter((id) => waiting.has(id)));
    },
  });

  return {
    waitFor(id, { timeoutMs, signal, isNew = false }) {
      if (stopped || signal?.aborted === true) return Promise.resolve(null);
      return new Promise((resolvePromise) => {
        const resolve: Resolve = (row) => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", abort);
          const set = waiting.get(id);
          set?.delete(resolve);
          if (set?.size === 0) waiting.delete(id);
          resolvePromise(row);
        };
        const abort = (): void => resolve(null);
        const timer = setTimeout(abort, timeoutMs);
        signal?.addEventListener("abort", abort, { once: true });
        const set = waiting.get(id);
        if (set === undefined) waiting.set(id, new Set([resolve]));
        else set.add(resolve);
        if (isNew) return;
        fresh.add(id);
        lookAtFresh();
      });
    },
    stop() {
      stopped = true;
      unlisten();
      clearInterval(poll);
      for (const resolvers of waiting.values()) for (const resolve of resolvers) resolve(null);
    },
  };
}
