import { once } from "node:events";
import type { Server } from "node:http";
import { connect } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, expect, test } from "vitest";
import { sendStream } from "../../../src/features/events/stream-events.js";
import { listen } from "../../support/listen.js";

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** A service with one endless response, and counters of its fate. */
async function serveStream(options: { chunk: string; stallMs: number; requests?: number }) {
  let taken = 0;
  let open = 0;
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  async function* chunks(): AsyncGenerator<string, void> {
    open += 1;
    try {
      for (;;) {
        taken += 1;
        yield options.chunk;
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      open -= 1;
      end();
    }
  }
  const app = new Hono();
  app.get("/", (c) => sendStream(c, chunks, { stallMs: options.stallMs }));
  server = createAdaptorServer({ fetch: app.fetch }) as Server;
  const { port } = await listen(server);
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(options.requests ?? 1));
  return { socket, ended, taken: () => taken, open: () => open };
}

test("a reader that reads nothing is dropped, and little is produced for it", async () => {
  const chunk = "x".repeat(64 * 1024);
  const { socket, ended, taken } = await serveStream({ chunk, stallMs: 300 });
  socket.pause();
  await ended;
  expect(taken() * chunk.length, "only the content of the sockets' own buffers").toBeLessThan(
    32 * 1024 * 1024,
  );
  const closed = once(socket, "close");
  socket.resume();
  await closed;
});

test("HEAD opens no stream, which nothing would close", async () => {
  const app = new Hono();
  let opened = 0;
  app.get("/", (c) =>
    sendStream(c, async function* () {
      opened += 1;
      yield "data\n";
    }),
  );
  const head = await app.request("/", { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  expect(opened).toBe(0);
  expect(await (await app.request("/")).body?.getReader().read()).toMatchObject({ done: false });
  expect(opened).toBe(1);
});

test("a reader that disconnects ends its stream", async () => {
  const { socket, ended } = await serveStream({ chunk: "data\n", stallMs: 60_000 });
  await once(socket, "data");
  socket.destroy();
  await ended;
});

test("a reader that disconnects also ends the streams that wait behind its first", async () => {
  const { socket, open } = await serveStream({ chunk: "data\n", stallMs: 60_000, requests: 3 });
  await expect.poll(open).toBe(3);
  socket.destroy();
  await expect.poll(open).toBe(0);
});

test("a reader that keeps up stays connected", async () => {
  const { socket, taken } = await serveStream({ chunk: "x".repeat(1024), stallMs: 600 });
  socket.resume();
  await new Promise((resolve) => setTimeout(resolve, 900));
  expect(socket.destroyed).toBe(false);
  expect(taken()).toBeGreaterThan(10);
  socket.destroy();
});
