/** Reads the log by position. Every query is bounded, however long the log and however rare the matches. */

import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, inArray, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { event, eventLog } from "../db/schema.js";
import { type EventFilter, type EventRow, matchesSql } from "./filter.js";

/** Log entries that one call scans for matches. */
const SCAN = 10_000n;

export interface EventPage {
  rows: EventRow[];
  /** Last scanned position; the next page continues after it. */
  end: bigint;
  hasMore: boolean;
}

/** Position of the newest event; 0 for an empty log. */
export async function newestPosition(db: Executor): Promise<bigint> {
  const [state] = await db.select({ newest: eventLog.lastPosition }).from(eventLog).where(eq(eventLog.id, 1));
  return state?.newest ?? 0n;
}

/** The next events after a position that match the filter and that the reader may see, in order. */
export async function readPage(
  db: Executor,
  {
    filter,
    reader,
    after,
    limit,
    newest,
  }: { filter: EventFilter; reader: Address; after: bigint; limit: number; newest: bigint },
): Promise<EventPage> {
  const end = await endOfScan(db, { filter, after, newest });
  const rows = await db
    .select()
    .from(event)
    .where(matchesSql(filter, { reader, after, end }))
    .orderBy(asc(event.position))
    .limit(limit + 1);
  const page = rows.slice(0, limit);
  const cut = rows.length > limit;
  return {
    rows: page,
    end: cut ? (page.at(-1)?.position ?? after) : end,
    hasMore: cut || end < newest,
  };
}

/** Last position to scan. With a contract filter, an index finds its events, so only those count towards the limit. */
async function endOfScan(
  db: Executor,
  { filter, after, newest }: { filter: EventFilter; after: bigint; newest: bigint },
): Promise<bigint> {
  if (newest <= after) return after;
  if (filter.contractId === undefined) return newest < after + SCAN ? newest : after + SCAN;
  const scanned = db
    .select({ position: event.position })
    .from(event)
    .where(and(eq(event.contractId, filter.contractId), gt(event.position, after)))
    .orderBy(asc(event.position))
    .limit(Number(SCAN))
    .as("scanned");
  const [bounds] = await db
    .select({
      count: sql<number>`count(*)::int`,
      last: sql<string | null>`max(${scanned.position})`,
    })
    .from(scanned);
  const isAll = bounds === undefined || bounds.last === null || bounds.count < Number(SCAN);
  return isAll ? newest : BigInt(bounds.last as string);
}

/** Events by position, regardless of visibility. */
export function readPositions(db: Executor, positions: readonly bigint[]): Promise<EventRow[]> {
  return positions.length === 0
    ? Promise.resolve([])
    : db
        .select()
        .from(event)
        .where(inArray(event.position, [...positions]));
}

/** All events after a position, for readers that filter in memory. */
export function readAfter(db: Executor, after: bigint, limit: number): Promise<EventRow[]> {
  return db.select().from(event).where(gt(event.position, after)).orderBy(asc(event.position)).limit(limit);
}
