/** A text/event-stream response with backpressure: it sends at its reader's pace. */
import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Context } from "hono";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store",
  // Otherwise nginx and similar proxies buffer the response.
  "X-Accel-Buffering": "no",
};

/**
 * Sends the chunks from `open` until the reader leaves, or has taken nothing for `stallMs`; then it aborts the signal.
 * Rethrows an error of the first chunk. HEAD opens nothing, because no one would read or close it.
 */
export async function sendStream(
  c: Context,
  open: (signal: AbortSignal) => AsyncGenerator<string, void>,
  { stallMs = LIMITS.streamStall * 1000 }: { stallMs?: number } = {},
): Promise<Response> {
  if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
  const closing = new AbortController();
  const chunks = open(closing.signal);
  // Read before the status is sent: a refusal is still an error response.
  const first = await chunks.next();
  const { incoming, outgoing } = (c.env ?? {}) as Partial<HttpBindings>;
  const body = bodyOf(first.value ?? "", chunks, {
    closing,
    stallMs,
    socket: incoming?.socket,
    drop: () => outgoing?.destroy(),
  });
  return c.body(body, 200, HEADERS);
}

/** Requests a chunk only after the reader has taken the one before, and drops a reader that stalls for too long. */
function bodyOf(
  first: string,
  chunks: AsyncGenerator<string, void>,
  {
    closing,
    stallMs,
    socket,
    drop,
  }: { closing: AbortController; stallMs: number; socket: Socket | undefined; drop: () => void },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let stall: NodeJS.Timeout | undefined;
  let pending: string | undefined = first;
  const close = async (): Promise<void> => {
    clearTimeout(stall);
    socket?.off("close", close);
    closing.abort();
    await chunks.return();
  };
  // A response queued behind another one on its connection gets no event when that closes.
  if (socket?.destroyed) void close();
  else socket?.on("close", close);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(stall);
        const next = pending === undefined ? await chunks.next() : { done: false, value: pending };
        pending = undefined;
        if (closing.signal.aborted) return;
        if (next.done || next.value === undefined) {
          controller.close();
          socket?.off("close", close);
          return;
        }
        controller.enqueue(encoder.encode(next.value));
        stall = setTimeout(() => {
          drop();
          void close();
        }, stallMs).unref();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
