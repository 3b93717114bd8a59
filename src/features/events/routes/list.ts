import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { listEvents } from "../list-events.js";
import { EventListQuerySchema, EventListSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/events",
  operationId: "listEvents",
  tags: ["Events"],
  summary: "Read the log of events from a position on, oldest first",
  description:
    "One log of all that happened to all contracts, in one order, without gaps. Pass `nextAfter` as `after` the next time. A call with filters looks through at most 10,000 events, so that it can answer with none although `hasMore` is true. An event that a reorganisation of the chain undid is followed by an `event.reverted` that names it in `data.eventId`.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { query: EventListQuerySchema },
  responses: {
    200: {
      description: "Events, and where to go on",
      content: { "application/json": { schema: EventListSchema } },
    },
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "unavailable"),
  },
});

export function listEventsRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) =>
    c.json(await listEvents(deps, { caller: c.get("caller"), ...c.req.valid("query") }), 200),
  );
}
