/** A text/event-stream answer that goes at its reader's pace. */
import type { Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Context } from "hono";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store",
  // Proxies of the nginx kind hold answers back otherwise.
  "X-Accel-Buffering": "no",
};

/**
 * Sends the chunks that `open` gives until the reader leaves, or has taken nothing for `stallMs`, which aborts the
 * signal. Throws what the first chunk throws. HEAD opens nothing: nobody would read or close it.
 */
export async function sendStream(
  c: Context,
  open: (signal: AbortSignal) => AsyncGenerator<string, void>,
  { stallMs = LIMITS.streamStall * 1000 }: { stallMs?: number } = {},
): Promise<Response> {
  if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
  const closing = new AbortController();
  const chunks = open(closing.signal);
  // Before the status goes out: a refusal is still an error.
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

/**
 * Asks for a chunk only when the reader has taken the one before: nothing piles up for a slow one. One that takes
 * nothing for too long is dropped.
 */
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
  // An answer that waits behind another one on its connection is not told when that closes.
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
