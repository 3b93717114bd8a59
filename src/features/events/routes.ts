/** One ordered log of events, to poll or to stream. */
import { z } from "@hono/zod-openapi";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { type EventFilter, newestPosition, readPage, requireReached, toEvent } from "../../events/log.js";
import { sendStream } from "../../http/event-stream.js";
import { clientAddress } from "../../http/middleware.js";
import { body, operation, raw } from "../../http/operation.js";
import { bearerKey } from "../agents/key-owners.js";
import {
  type EventList,
  EventListQuerySchema,
  EventListSchema,
  EventStreamQuerySchema,
  LastEventIdSchema,
} from "./schema.js";

const tag = "Events";

export const eventOperations = [
  operation({
    method: "get",
    path: "/v1/events",
    operationId: "listEvents",
    tag,
    summary: "Read the event log after a position, oldest first",
    description:
      "One log of everything that happened to all contracts, in one order, without gaps. Pass `nextAfter` as `after` in the next call. A call with filters searches at most 10,000 events, so it can return none although `hasMore` is true. An event that a chain reorganization removed is followed by an `event.reverted` that names it in `data.eventId`.",
    longRead: true,
    query: EventListQuerySchema,
    returns: body("Events, and where to continue", EventListSchema),
    handle: (deps, { query, caller }) => listEvents(deps, { caller, ...query }),
  }),
  operation({
    method: "get",
    path: "/v1/events/stream",
    operationId: "streamEvents",
    tag,
    summary: "Receive events as they happen (server-sent events)",
    description:
      "The same log as GET /v1/events. Each message has the event's type as `event`, its id as `id` and the Event as `data`. A reader that reconnects with `Last-Event-ID` misses nothing. Heartbeats are comments, every 15 seconds, and advance the id. A stream ends after 15 minutes, or when its reader takes nothing for 20 seconds.",
    longRead: true,
    query: EventStreamQuerySchema,
    headers: LastEventIdSchema,
    returns: raw("A stream that continues until it is closed", {
      "text/event-stream": { schema: z.string() },
    }),
    errors: ["too_many_streams"],
    handle: ({ config, keys, streams }, { query: { after, filter }, headers, caller, c }) => {
      const client = clientAddress(c, config.trustedProxies);
      const position = headers["last-event-id"] ?? after ?? null;
      const key = bearerKey(c.req.header("authorization") ?? "") ?? "";
      const isSignedIn = async () => (await keys.ownerOf(key)) === caller;
      return sendStream(c, (signal) =>
        streams.open({ caller, after: position, filter, signal, client, isSignedIn }),
      );
    },
  }),
];

/** `latest` returns no events, only the end of the log. Throws `invalid_request` for a position beyond the end. */
async function listEvents(
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
