import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { sendStream } from "../../../http/event-stream.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { createEventStreams } from "../stream-events.js";
import { EventStreamQuerySchema, LastEventIdSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/events/stream",
  operationId: "streamEvents",
  tags: ["Events"],
  summary: "Receive events as they happen (server-sent events)",
  description:
    "The same log as GET /v1/events. Each message has the event's type as `event`, its id as `id` and the Event as `data`. A reader that comes back with `Last-Event-ID` misses nothing. Heartbeats are comments, every 15 seconds, and move the id on. A stream ends after 15 minutes, and when its reader takes nothing for 20 seconds.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { query: EventStreamQuerySchema, headers: LastEventIdSchema },
  responses: {
    200: {
      description: "A stream that goes on until it is closed",
      content: { "text/event-stream": { schema: z.string() } },
    },
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "too_many_streams", "unavailable"),
  },
});

export function streamEventsRoute(deps: Deps) {
  const streams = createEventStreams(deps, { maxStreams: deps.config.eventStreams });
  return createRouter().openapi(route, async (c) => {
    const { after, filter } = c.req.valid("query");
    const position = c.req.valid("header")["last-event-id"] ?? after ?? null;
    return (await sendStream(c, (signal) =>
      streams.open({ caller: c.get("caller"), after: position, filter, signal }),
    )) as never;
  });
}
