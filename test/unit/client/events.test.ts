import { followEvents, verifyWebhook } from "@working-contracts/client/events";
import { createHttp } from "@working-contracts/client/http";
import type { Session } from "@working-contracts/client/session";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

type Responder = (url: URL, signal: AbortSignal | null | undefined) => Response;

const refuse =
  (status: number, code: string): Responder =>
  () =>
    Response.json({ error: { code, message: `${code} at the service` } }, { status });
const drop: Responder = () => {
  throw new TypeError("fetch failed");
};
const page =
  (nextAfter: string, ...ids: string[]): Responder =>
  () =>
    Response.json({ data: ids.map((id) => ({ id })), nextAfter, hasMore: false });

/** A session whose requests get these responses, one after another, and the requested URLs. */
function scripted(...responses: Responder[]) {
  const urls: string[] = [];
  const http = createHttp({
    baseUrl: "https://service.example",
    patienceMs: 0,
    async fetch(input, { signal } = {}) {
      urls.push(String(input).replace("https://service.example/v1", ""));
      const next = responses.shift();
      if (next === undefined) throw new Error("There is no further response");
      return next(new URL(String(input)), signal);
    },
  });
  return { session: { http, apiKey: "" } as Session, urls };
}

/** The ids of the events until there are so many. Time passes as fast as it can. */
async function idsOf(session: Session, count: number, reasons: string[] = [], options = {}) {
  const ids: string[] = [];
  const reading = (async () => {
    const onInterruption = (reason: string) => reasons.push(reason);
    for await (const { id } of followEvents(session, { ...options, onInterruption }))
      if (ids.push(id) === count) return;
  })();
  let isOver = false;
  reading.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await reading;
  return ids;
}

it("survives an outage at any step, and misses nothing", async () => {
  const { session, urls } = scripted(
    drop,
    refuse(503, "service_unavailable"),
    page("7"),
    drop,
    refuse(500, "internal_error"),
    refuse(429, "rate_limited"),
    page("9", "8", "9"),
    drop,
    () => new Response("<html>", { status: 404 }),
    page("10", "10"),
  );
  const reasons: string[] = [];
  expect(await idsOf(session, 3, reasons)).toEqual(["8", "9", "10"]);
  expect(reasons).toHaveLength(7);
  expect(reasons[1]).toBe("service_unavailable at the service");
  expect(urls.slice(0, 3)).toEqual(Array(3).fill("/events?after=latest"));
  expect(urls.slice(-1)).toEqual(["/events?after=9"]);
});

it("streams before it polls, and resumes a broken stream where it stopped", async () => {
  const stream = (text: string) => () => new Response(text);
  const { session, urls } = scripted(
    page("7"),
    stream('id: 8\ndata: {"id":"8"}\n\nid: 9\n\nid: 10\ndata: {"id'),
    stream('id: 10\ndata: {"id":"10"}\n\n'),
  );
  expect(await idsOf(session, 2)).toEqual(["8", "10"]);
  expect(urls.slice(1)).toEqual(["/events/stream?after=7", "/events/stream?after=9"]);
});

it("begins at the newest position if `after` is latest", async () => {
  const { session, urls } = scripted(page("7"), () => new Response('id: 8\ndata: {"id":"8"}\n\n'));
  expect(await idsOf(session, 1, [], { after: "latest" })).toEqual(["8"]);
  expect(urls).toEqual(["/events?after=latest", "/events/stream?after=7"]);
});

const streamOf = (pieces: Iterable<string>): Responder => {
  const text = new TextEncoder();
  const rest = pieces[Symbol.iterator]();
  return () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          const { done, value } = rest.next();
          if (done) controller.close();
          else controller.enqueue(text.encode(value));
        },
      }),
    );
};

it("polls if streams end before anything comes", async () => {
  const { session, urls } = scripted(page("7"), streamOf([]), streamOf([]), page("9", "8", "9"));
  expect(await idsOf(session, 2)).toEqual(["8", "9"]);
  expect(urls.at(-1)).toBe("/events?after=7");
});

it("reads events that come in pieces, and ends a stream whose event is too long", async () => {
  const long: string[] = Array(20).fill("x".repeat(2 ** 22));
  const events = 'id: 8\ndata: {"id":"8"}\n\nid: 9\ndata: {"id":"9"}\n\n';
  const { session } = scripted(page("7"), streamOf(long), streamOf(events));
  const reasons: string[] = [];
  expect(await idsOf(session, 2, reasons)).toEqual(["8", "9"]);
  expect(reasons).toEqual([expect.stringContaining("an event is longer than")]);
});

it("resumes a stream that fell silent, and keeps one with heartbeats", async () => {
  const silentAfter =
    (...texts: string[]): Responder =>
    (_, signal) =>
      new Response(
        new ReadableStream({
          start(controller) {
            signal?.addEventListener("abort", () => controller.error(signal.reason));
          },
          pull(controller) {
            const text = texts.shift();
            if (text === undefined) return;
            return new Promise((resolve) => setTimeout(resolve, 30_000)).then(() =>
              controller.enqueue(new TextEncoder().encode(text)),
            );
          },
        }),
      );
  const { session, urls } = scripted(
    page("7"),
    silentAfter("id: 7\n\n", "id: 8\n\n", 'id: 9\ndata: {"id":"9"}\n\n'),
    silentAfter('id: 10\ndata: {"id":"10"}\n\n'),
  );
  const reasons: string[] = [];
  expect(await idsOf(session, 2, reasons)).toEqual(["9", "10"]);
  expect(reasons).toEqual(["nothing came for 45 seconds"]);
  expect(urls.slice(1)).toEqual(["/events/stream?after=7", "/events/stream?after=9"]);
});

it("resumes after a refusal whose text stops in the middle", async () => {
  const half: Responder = () => {
    const start = (body: ReadableStreamDefaultController) => body.enqueue(new TextEncoder().encode("{"));
    return new Response(new ReadableStream({ start }), { status: 503 });
  };
  const events: Responder = () => new Response('id: 8\ndata: {"id":"8"}\n\n');
  const { session } = scripted(page("7"), half, events);
  const reasons: string[] = [];
  expect(await idsOf(session, 1, reasons)).toEqual(["8"]);
  expect(reasons).toEqual(["nothing came for 45 seconds"]);
});

it("ends when it is aborted, also if the stream does not notice", async () => {
  const deaf = (): Responder => () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('id: 8\ndata: {"id":"8"}\n\n')),
      }),
    );
  const { session } = scripted(page("7"), deaf());
  const stopped = new AbortController();
  const ids: string[] = [];
  for await (const { id } of followEvents(session, { signal: stopped.signal })) {
    ids.push(id);
    setImmediate(() => stopped.abort());
  }
  expect(ids).toEqual(["8"]);
});

it("ends with the service's error if the service refuses the request", async () => {
  const { session } = scripted(page("7"), refuse(401, "unauthorized"));
  await expect(idsOf(session, 1)).rejects.toMatchObject({
    name: "ServiceError",
    code: "unauthorized",
    status: 401,
    message: "unauthorized at the service",
  });
});

it("verifies a webhook with its secret, and refuses a changed or an old one", async () => {
  const [secret, other] = ["a", "b"].map((letter) => `whsec_${btoa(letter.repeat(24))}`) as [string, string];
  const body = JSON.stringify({ id: "1", type: "contract.created" });
  const now = new Date();
  const headers = {
    "webhook-id": "1",
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("1", now, body),
  };
  expect(await verifyWebhook(secret, { headers, body })).toEqual(JSON.parse(body));
  const upper = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name.toUpperCase(), text]));
  expect(await verifyWebhook(secret, { headers: upper, body })).toEqual(JSON.parse(body));
  const changed = { headers, body: body.replace("created", "settled") };
  await expect(verifyWebhook(secret, changed)).rejects.toThrow("not signed");
  await expect(verifyWebhook(other, { headers, body })).rejects.toThrow("not signed");
  const old = { ...headers, "webhook-timestamp": "1" };
  await expect(verifyWebhook(secret, { headers: old, body })).rejects.toThrow("not current");
});
