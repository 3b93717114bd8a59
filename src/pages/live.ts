/**
 * `/live`: the event stream of the pages, which have no API key. It carries only public events, and its connections
 * are limited by client IP.
 */
import type { Context } from "hono";
import type { Deps } from "../deps.js";
import { EventStreamQuerySchema, LastEventIdSchema } from "../features/events/schema.js";
import { createEventStreams } from "../features/events/stream-events.js";
import { sendStream } from "../http/event-stream.js";
import { clientAddress } from "../http/rate-limit.js";
import { invalidInput } from "../http/responses.js";
import type { AppEnv } from "../http/router.js";
import { NOBODY } from "./nobody.js";

/** Accepts the query of `GET /v1/events/stream`, and throws 400, 429 and 503 in the same cases. */
export function streamChanges(deps: Pick<Deps, "db" | "feed" | "config">) {
  const { config } = deps;
  const streams = createEventStreams(deps, { maxStreams: config.eventStreams });
  return (c: Context<AppEnv>): Promise<Response> => {
    const query = EventStreamQuerySchema.safeParse(c.req.query());
    if (!query.success) throw invalidInput(query.error.issues);
    const { after = null, filter } = query.data;
    const seen = LastEventIdSchema.safeParse({ "last-event-id": c.req.header("last-event-id") });
    return sendStream(c, (signal) =>
      streams.open({
        caller: NOBODY,
        countedAs: clientAddress(c, config.trustedProxies),
        after: seen.data?.["last-event-id"] ?? after,
        filter,
        signal,
      }),
    );
  };
}
