import { createRoute, z } from "@hono/zod-openapi";
import { LIMITS } from "../../../protocol/limits.js";
import type { Deps } from "../../../services/deps.js";
import { createEventStreams } from "../../../services/events/stream-events.js";
import { errorResponses } from "../../envelope.js";
import { KEY_SECURITY, requireKey } from "../../middleware/auth.js";
import { createRouter } from "../../router.js";
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
    const closing = new AbortController();
    const chunks = streams.open({
      caller: c.get("caller"),
      after: position,
      filter,
      signal: closing.signal,
    });
    // Before the status goes out: a refusal is still an error.
    const first = await chunks.next();
    const { outgoing } = (c.env ?? {}) as { outgoing?: { destroy(): void } };
    const body = bodyOf(first.value ?? "", chunks, { closing, drop: () => outgoing?.destroy() });
    return c.body(body, 200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
      // Proxies of the nginx kind hold answers back otherwise.
      "X-Accel-Buffering": "no",
    }) as never;
  });
}

/**
 * Asks for a chunk only when the reader has taken the one before: nothing piles up for a slow one. One that takes
 * nothing for too long is dropped.
 */
function bodyOf(
  first: string,
  chunks: AsyncGenerator<string, void>,
  { closing, drop }: { closing: AbortController; drop: () => void },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let stall: NodeJS.Timeout | undefined;
  let pending: string | undefined = first;
  const close = async (): Promise<void> => {
    clearTimeout(stall);
    closing.abort();
    await chunks.return();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(stall);
        const next = pending === undefined ? await chunks.next() : { done: false, value: pending };
        pending = undefined;
        if (closing.signal.aborted) return;
        if (next.done || next.value === undefined) {
          controller.close();
          return;
        }
        controller.enqueue(encoder.encode(next.value));
        stall = setTimeout(() => {
          drop();
          void close();
        }, LIMITS.streamStall * 1000).unref();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
