/**
 * Reads the log by position, and decides which events a reader asked for and may see: one rule, for rows in memory and
 * in SQL. Every query is bounded, however long the log and however rare the matches.
 */

import type { EventType } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, inArray, lte, sql } from "drizzle-orm";
import type { Executor } from "../db/client.js";
import { event, eventLog } from "../db/schema.js";
import { AppError } from "../errors.js";

export type EventRow = typeof event.$inferSelect;

export interface EventFilter {
  types?: readonly EventType[] | undefined;
  contractId?: Address | undefined;
  /** Only events that concern this agent. */
  agent?: Address | undefined;
}

/**
 * An event as every reader gets it: by polling, by stream and by webhook. `type`, `timestamp` and `data` follow
 * Standard Webhooks.
 */
export interface EventView {
  /** Its position in the log. The ids of all events are 1, 2, 3 and so on. */
  id: string;
  type: EventType;
  /** When it happened, by the chain's clock. Events are ordered by `id`. */
  timestamp: string;
  contractId: string;
  /** Agents that it concerns. */
  agents: string[];
  data: Record<string, unknown>;
  /** The escrow event that it reports; null if there is none. */
  chain: { blockNumber: number; blockHash: Hex; transactionHash: Hex; logIndex: number } | null;
}

export function toEvent(row: EventRow): EventView {
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

export function matches(row: EventRow, { types, contractId, agent }: EventFilter, reader: Address): boolean {
  return (
    (row.visibleTo === null || row.visibleTo.includes(reader)) &&
    (types === undefined || types.includes(row.type)) &&
    (contractId === undefined || row.contractId === contractId) &&
    (agent === undefined || row.agents.includes(agent))
  );
}

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

/** A reader ahead of the log has a position in a different log: it would miss events silently. */
export function requireReached(after: bigint, newest: bigint): void {
  if (after <= newest) return;
  const message = `is ahead of the log, whose newest event is ${newest}`;
  throw new AppError("invalid_request", {
    message: `after: ${message}.`,
    details: [{ path: "after", message }],
  });
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
  const { types, contractId, agent } = filter;
  const rows = await db
    .select()
    .from(event)
    .where(
      and(
        gt(event.position, after),
        lte(event.position, end),
        sql`(${event.visibleTo} is null or ${reader} = any(${event.visibleTo}))`,
        types && inArray(event.type, [...types]),
        contractId && eq(event.contractId, contractId),
        agent && sql`${agent} = any(${event.agents})`,
      ),
    )
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

/** All events after a position, for readers that filter in memory. */
export function readAfter(db: Executor, after: bigint, limit: number): Promise<EventRow[]> {
  return db.select().from(event).where(gt(event.position, after)).orderBy(asc(event.position)).limit(limit);
}
