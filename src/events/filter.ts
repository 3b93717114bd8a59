/** Which events a reader asked for and may see: one rule, for rows in memory and in SQL. */

import type { EventType } from "@working-contracts/protocol/events";
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, gt, inArray, lte, type SQL, sql } from "drizzle-orm";
import { event } from "../db/schema.js";

export type EventRow = typeof event.$inferSelect;

export interface EventFilter {
  types?: readonly EventType[] | undefined;
  contractId?: Address | undefined;
  /** Only events that concern this agent. */
  agent?: Address | undefined;
}

export function matches(row: EventRow, { types, contractId, agent }: EventFilter, reader: Address): boolean {
  return (
    (row.visibleTo === null || row.visibleTo.includes(reader)) &&
    (types === undefined || types.includes(row.type)) &&
    (contractId === undefined || row.contractId === contractId) &&
    (agent === undefined || row.agents.includes(agent))
  );
}

/** Positions above `after`, up to `end`. */
export function matchesSql(
  { types, contractId, agent }: EventFilter,
  { reader, after, end }: { reader: Address; after: bigint; end: bigint },
): SQL | undefined {
  return and(
    gt(event.position, after),
    lte(event.position, end),
    sql`(${event.visibleTo} is null or ${reader} = any(${event.visibleTo}))`,
    types && inArray(event.type, [...types]),
    contractId && eq(event.contractId, contractId),
    agent && sql`${agent} = any(${event.agents})`,
  );
}
