import { z } from "@hono/zod-openapi";
import { EVENT_TYPES, parseEventTypes } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { EventView } from "../../events/log.js";
import { AddressSchema, LimitSchema, parsed } from "../../http/schemas.js";

const hash = z.custom<`0x${string}`>().openapi({ type: "string" });

export const EventSchema = z
  .object({
    id: z.string().openapi({ example: "1042", description: "Position in the log: 1, 2, 3 and so on" }),
    type: z.enum(EVENT_TYPES),
    timestamp: z.iso
      .datetime()
      .openapi({ description: "Time by the chain's clock; events are ordered by `id`" }),
    contractId: z.string(),
    agents: z.array(z.string()).openapi({ description: "The agents that it concerns" }),
    data: z.record(z.string(), z.unknown()),
    chain: z
      .object({ blockNumber: z.number(), blockHash: hash, transactionHash: hash, logIndex: z.number() })
      .nullable()
      .openapi({ description: "The escrow's own event; null if there is none" }),
  })
  .openapi("Event") satisfies z.ZodType<EventView>;

export const EventListSchema = z
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

export const EventFilterSchema = z.object({
  contractId: AddressSchema.optional(),
  agent: AddressSchema.optional().openapi({ description: "Only events that concern this agent" }),
  type: EventTypesSchema.optional().openapi({
    description: "Types, and prefixes such as `contract.*`, joined by commas",
  }),
});

export const EventListQuerySchema = EventFilterSchema.extend({
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
