/** One ordered log of events, to poll or to stream. */
import { z } from "@hono/zod-openapi";
import { EVENT_TYPES, parseEventTypes } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { type EventView, newestPosition, readPage, requireReached, toEvent } from "../../events/log.js";
import { body, endpoints, raw } from "../../http/endpoint.js";
import { bearerKey } from "../../http/key-owners.js";
import { AddressSchema, AddressViewSchema, LimitSchema, parsed } from "../../http/schemas.js";
import { sendStream } from "./stream-events.js";

const hash = z.custom<`0x${string}`>().openapi({ type: "string" });

const EventSchema = z
  .object({
    id: z.string().openapi({ example: "1042", description: "Position in the log: 1, 2, 3 and so on" }),
    type: z.enum(EVENT_TYPES),
    timestamp: z.iso
      .datetime()
      .openapi({ description: "Time by the chain's clock; events are ordered by `id`" }),
    contractId: AddressViewSchema,
    agents: z.array(AddressViewSchema).openapi({ description: "The agents that it concerns" }),
    data: z.record(z.string(), z.unknown()),
    chain: z
      .object({ blockNumber: z.number(), blockHash: hash, transactionHash: hash, logIndex: z.number() })
      .nullable()
      .openapi({ description: "The escrow's own event; null if there is none" }),
  })
  .openapi("Event") satisfies z.ZodType<EventView>;

const EventListSchema = z
  .object({
    data: z.array(EventSchema),
    nextAfter: z.string().openapi({ description: "`after` of the next call, even if there were no events" }),
    hasMore: z.boolean().openapi({ description: "Whether an immediate next call can return more" }),
  })
  .openapi("EventList");
export type EventList = z.infer<typeof EventListSchema>;

/** A position in the log. The largest that Postgres can hold has 19 digits. */
export const PositionSchema = z
  .string()
  .regex(/^\d{1,18}$/, "must be the id of an event, or 0")
  .transform(BigInt)
  .openapi({ type: "string", example: "1042" });

export const EventTypesSchema = parsed(
  parseEventTypes,
  `must be types or prefixes such as contract.*, joined by commas: ${EVENT_TYPES.join(", ")}`,
).openapi({ type: "string", example: "contract.*,payout.paid" });

const EventFilterSchema = z.object({
  contractId: AddressSchema.optional(),
  agent: AddressSchema.optional().openapi({ description: "Only events that concern this agent" }),
  type: EventTypesSchema.optional().openapi({
    description:
      "Types, and prefixes such as `contract.*`, joined by commas. A type also stands for the `event.reverted` of its events",
  }),
});

const EventListQuerySchema = EventFilterSchema.extend({
  after: z
    .union([z.literal("latest"), PositionSchema])
    .default(0n)
    .openapi({
      type: "string",
      example: "1042",
      description:
        "Only events after this id: `nextAfter` of the previous call, 0 (the default) for the whole log, or `latest`",
    }),
  limit: LimitSchema.default(LIMITS.pageSize).openapi({ default: LIMITS.pageSize }),
}).transform(({ after, limit, type, ...filter }) => ({ after, limit, filter: { ...filter, types: type } }));

export const EventStreamQuerySchema = EventFilterSchema.extend({
  after: PositionSchema.optional().openapi({
    description: "Where to start without `Last-Event-ID`; now by default",
  }),
}).transform(({ after, type, ...filter }) => ({ after, filter: { ...filter, types: type } }));

export const LastEventIdSchema = z.object({
  "last-event-id": PositionSchema.optional().openapi({
    description: "The last received id; takes precedence over `after`",
  }),
});

const { get } = endpoints("Events");

export const eventEndpoints = [
  get("/v1/events", {
    operationId: "listEvents",
    summary: "Read the event log after a position, oldest first",
    description:
      "One log of everything that happened to all contracts, in one order, without gaps. Pass `nextAfter` as `after` in the next call. A call with filters searches at most 10,000 events, so it can return none although `hasMore` is true. An event that a chain reorganization removed is followed by an `event.reverted` that names it in `data.eventId`.",
    longRead: true,
    query: EventListQuerySchema,
    returns: body("Events, and where to continue", EventListSchema),
    handle: (deps, { query, caller }) => listEvents(deps, { caller, ...query }),
  }),
  get("/v1/events/stream", {
    operationId: "streamEvents",
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
    handle: ({ keys, streams }, { query: { after, filter }, headers, caller, c }) => {
      const ip = c.get("ip");
      const position = headers["last-event-id"] ?? after ?? null;
      const key = bearerKey(c.req.header("authorization") ?? "") ?? "";
      const isSignedIn = async () => (await keys.ownerOf(key)) === caller;
      return sendStream(c, (signal) =>
        streams.open({ caller, after: position, filter, signal, ip, isSignedIn }),
      );
    },
  }),
];

/** `latest` returns no events, only the end of the log. Throws `invalid_request` for a position beyond the end. */
async function listEvents(
  { db }: Pick<Deps, "db">,
  { caller, after, filter, limit }: z.output<typeof EventListQuerySchema> & { caller: Address },
): Promise<EventList> {
  const newest = await newestPosition(db);
  if (after === "latest") return { data: [], nextAfter: newest.toString(), hasMore: false };
  requireReached(after, newest);
  const { rows, end, hasMore } = await readPage(db, { filter, reader: caller, after, limit, newest });
  return { data: rows.map(toEvent), nextAfter: end.toString(), hasMore };
}
