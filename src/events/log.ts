/** The event log for the rest of the service ("Events" in docs/decisions.md). */
import type { EventType, ServiceEventType } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, inArray, lte, or, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { event, eventLog } from "../db/schema.js";
import { invalidField } from "../errors.js";
import { createLoop, type LoopOptions, type Wakers } from "../scheduling.js";

/** Postgres channel; payload: the log's newest position. */
export const EVENTS_APPENDED = "events_appended";

/** A row without its place in the log, which holds each `source` once, not counting reverted events. */
export type EventDraft = Omit<typeof event.$inferInsert, "id" | "position" | "revertedBy"> & {
  contractId: Address;
  agents: Address[];
};

/** The known parties, in lower case and without duplicates. */
export function agentsOf(...parties: (string | null | undefined)[]): Address[] {
  return [
    ...new Set(parties.filter((party) => party != null).map((party) => party.toLowerCase() as Address)),
  ];
}

/** Stages an event in the transaction of the change that it reports; the writer moves it into the log soon. */
export async function stageEvent(
  tx: Executor,
  draft: EventDraft & { type: ServiceEventType },
): Promise<void> {
  await tx.insert(event).values(draft);
}

export type EventRow = typeof event.$inferSelect;

export interface EventFilter {
  /** A type also stands for the reversals of its events. */
  types?: readonly EventType[] | undefined;
  contractId?: Address | undefined;
  /** Only events that concern this agent. */
  agent?: Address | undefined;
}

export type EventView = ReturnType<typeof toEvent>;

/** An event as every reader gets it. `type`, `timestamp` and `data` follow Standard Webhooks. */
export function toEvent(row: EventRow) {
  return {
    id: String(row.position),
    type: row.type,
    timestamp: row.occurredAt.toISOString(),
    contractId: row.contractId,
    agents: row.agents,
    data: row.data,
    chain:
      row.blockNumber === null
        ? null
        : {
            blockNumber: Number(row.blockNumber),
            blockHash: row.blockHash as Hex,
            transactionHash: row.transactionHash as Hex,
            logIndex: row.logIndex as number,
          },
  };
}

const revertedType = ({ type, data }: EventRow) => (type === "event.reverted" ? data.type : null);
const revertedTypeSql = sql`case ${event.type} when 'event.reverted' then ${event.data} ->> 'type' end`;

/** Whether `reader` may see the event and the filter names it. */
export function matches(row: EventRow, { types, contractId, agent }: EventFilter, reader: Address): boolean {
  return (
    (row.visibleTo === null || row.visibleTo.includes(reader)) &&
    (types === undefined || types.some((type) => type === row.type || type === revertedType(row))) &&
    (contractId === undefined || row.contractId === contractId) &&
    (agent === undefined || row.agents.includes(agent))
  );
}

/** Log entries that one call scans for matches. */
const SCAN = 10_000n;

/** Position of the newest event; 0 for an empty log. */
export async function newestPosition(db: Executor): Promise<bigint> {
  const [state] = await db.select({ newest: eventLog.lastPosition }).from(eventLog).where(eq(eventLog.id, 1));
  return state?.newest ?? 0n;
}

/** A reader ahead of the log has a position in a different log: it would miss events silently. */
export function requireReached(after: bigint, newest: bigint): void {
  if (after <= newest) return;
  throw invalidField("after", `is ahead of the log, whose newest event is ${newest}`);
}

/** The next events after a position that match the filter and that the reader may see; the next page is after `end`. */
export async function readPage(
  db: Executor,
  {
    filter,
    reader,
    after,
    limit,
    newest,
  }: { filter: EventFilter; reader: Address; after: bigint; limit: number; newest: bigint },
) {
  const end = await endOfScan(db, { filter, after, newest });
  const { types, contractId, agent } = filter;
  const rows = await db
    .select()
    .from(event)
    .where(
      and(
        gt(event.position, after),
        lte(event.position, end),
        sql`(${event.visibleTo} is null or ${reader} = any(${event.visibleTo}))`,
        types && or(inArray(event.type, [...types]), inArray(revertedTypeSql, [...types])),
        contractId && eq(event.contractId, contractId),
        agent && sql`${agent} = any(${event.agents})`,
      ),
    )
    .orderBy(asc(event.position))
    .limit(limit + 1);
  if (rows.length <= limit) return { rows, end, hasMore: end < newest };
  const page = rows.slice(0, limit);
  return { rows: page, end: page.at(-1)?.position ?? after, hasMore: true };
}

/** Last position to scan. With a contract filter, an index finds its events, so only those count towards the limit. */
async function endOfScan(
  db: Executor,
  { filter, after, newest }: { filter: EventFilter; after: bigint; newest: bigint },
): Promise<bigint> {
  if (newest <= after) return after;
  if (filter.contractId === undefined) return newest < after + SCAN ? newest : after + SCAN;
  const [last] = await db
    .select({ position: event.position })
    .from(event)
    .where(and(eq(event.contractId, filter.contractId), gt(event.position, after)))
    .orderBy(asc(event.position))
    .offset(Number(SCAN) - 1)
    .limit(1);
  return last?.position ?? newest;
}

/** The event at a position, regardless of visibility. */
export async function readPosition(db: Executor, position: bigint): Promise<EventRow | undefined> {
  const [row] = await db.select().from(event).where(eq(event.position, position));
  return row;
}

/** Events kept in memory. A reader that is further behind reads from the database. */
const KEPT = 1_000;
const PAGE = 500;
const POLL_INTERVAL_MS = 1_000;

export type EventFeed = Awaited<ReturnType<typeof createEventFeed>>;

/**
 * Keeps the newest part of the log in memory, updated by notifications, for any number of readers in this process.
 * Readers pull at their own pace: nothing is queued for them. Resolves once the newest position is known; rejects
 * if the database cannot be read.
 */
export async function createEventFeed({
  db,
  notifications,
  logger,
}: { db: Executor } & Pick<Wakers, "notifications"> & Pick<LoopOptions, "logger">) {
  const stopping = new AbortController();
  const waiting = new Set<() => void>();
  let kept: EventRow[] = [];
  let newest = await newestPosition(db);

  const loop = createLoop({
    name: "event feed",
    logger,
    intervalMs: POLL_INTERVAL_MS,
    maxBackoffMs: POLL_INTERVAL_MS,
    wakers: { notifications, channels: [EVENTS_APPENDED] },
    async round() {
      const later = db.select().from(event).where(gt(event.position, newest));
      const rows = await later.orderBy(asc(event.position)).limit(PAGE);
      newest = rows.at(-1)?.position ?? newest;
      kept = [...kept, ...rows].slice(-KEPT);
      if (rows.length > 0) for (const wake of [...waiting]) wake();
      return rows.length === PAGE;
    },
  });
  loop.start();

  return {
    /** Newest position known to this process. */
    newest: () => newest,
    /** Aborted when the feed stops, so that its readers end. */
    stopped: stopping.signal,
    /** Events after a position, oldest first; null if they are no longer in memory. */
    after(position: bigint): readonly EventRow[] | null {
      if (position >= newest) return [];
      const first = kept[0]?.position ?? newest + 1n;
      return position + 1n < first ? null : kept.slice(Number(position + 1n - first));
    },
    /** Resolves when there is an event after the position, on time-out, on abort, or when the feed stops. */
    wait(position: bigint, { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal }): Promise<void> {
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
    stop(): void {
      void loop.stop();
      stopping.abort();
      for (const wake of [...waiting]) wake();
    },
  };
}
