/** GET /v1/events: the log by position, for polling. */

import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { EventFilter } from "../../events/filter.js";
import { newestPosition, readPage } from "../../events/read.js";
import { type EventView, toEvent } from "../../events/view.js";

export interface EventList {
  data: EventView[];
  /** `after` for the next call, even if there were no events. */
  nextAfter: string;
  hasMore: boolean;
}

/** `latest` returns no events, only the end of the log. Throws `invalid_request` for a position beyond the end. */
export async function listEvents(
  { db }: Pick<Deps, "db">,
  {
    caller,
    after,
    filter,
    limit,
  }: { caller: Address; after: bigint | "latest"; filter: EventFilter; limit: number },
): Promise<EventList> {
  const newest = await newestPosition(db);
  if (after === "latest") return { data: [], nextAfter: newest.toString(), hasMore: false };
  requireReached(after, newest);
  const { rows, end, hasMore } = await readPage(db, { filter, reader: caller, after, limit, newest });
  return { data: rows.map(toEvent), nextAfter: end.toString(), hasMore };
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
