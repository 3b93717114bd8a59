/**
 * Keeps the newest part of the log in memory, updated by notifications, for any number of readers in this process. Readers pull at their own pace: nothing is queued for them.
 */
import { drizzle } from "drizzle-orm/node-postgres";
import type pg from "pg";
import type { Notifications } from "../db/notifications.js";
import { EVENTS_APPENDED } from "./append.js";
import { type EventRow, newestPosition, readAfter } from "./read.js";

/** Events kept in memory. A reader that is further behind reads from the database. */
const KEPT = 1_000;
const PAGE = 500;
const POLL_INTERVAL_MS = 1_000;

export interface EventFeed {
  /** Newest position known to this process. */
  newest(): bigint;
  /** Events after a position, oldest first; null if they are no longer in memory. */
  after(position: bigint): readonly EventRow[] | null;
  /** Resolves when there is an event after the position, on time-out, on abort, or when the feed stops. */
  wait(position: bigint, options: { timeoutMs: number; signal: AbortSignal }): Promise<void>;
  /** Aborted when the feed stops, so that its readers end. */
  stopped: AbortSignal;
  stop(): void;
}

/** Resolves once the newest position is known; rejects if the database cannot be read. */
export async function createEventFeed({
  pool,
  notifications,
  pollIntervalMs = POLL_INTERVAL_MS,
}: {
  pool: pg.Pool;
  notifications: Notifications;
  pollIntervalMs?: number;
}): Promise<EventFeed> {
  const db = drizzle(pool, { casing: "snake_case" });
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  let kept: EventRow[] = [];
  let newest = await newestPosition(db);
  let isReading = false;
  let isAsked = false;

  /** Reads to the end of the log. A call during a read makes it check again. */
  const refresh = async (): Promise<void> => {
    isAsked = true;
    if (isReading) return;
    isReading = true;
    try {
      while (isAsked && !stopping.signal.aborted) {
        isAsked = false;
        const rows = await readAfter(db, newest, PAGE);
        const last = rows.at(-1)?.position;
        if (last == null) continue;
        newest = last;
        kept = [...kept, ...rows].slice(-KEPT);
        isAsked ||= rows.length === PAGE;
        for (const wake of [...waiting]) wake();
      }
    } catch {
      // The database is unreachable: the next poll retries.
    } finally {
      isReading = false;
    }
  };

  const poll = setInterval(() => void refresh(), pollIntervalMs).unref();
  const unlisten = notifications.listen(EVENTS_APPENDED, { onNotification: () => void refresh() });

  return {
    newest: () => newest,
    stopped: stopping.signal,
    after(position) {
      if (position >= newest) return [];
      const first = kept[0]?.position ?? newest + 1n;
      return position + 1n < first ? null : kept.slice(Number(position + 1n - first));
    },
    wait(position, { timeoutMs, signal }) {
      if (newest > position || signal.aborted || stopping.signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        waiting.add(done);
        signal.addEventListener("abort", done, { once: true });
      });
    },
    stop() {
      clearInterval(poll);
      unlisten();
      stopping.abort();
      for (const wake of [...waiting]) wake();
    },
  };
}
