/** GET /v1/events/stream: the log as server-sent events, and the response that sends them at its reader's pace. */
import type { HttpBindings } from "@hono/node-server";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { Context } from "hono";
import type { Executor } from "../../db/client.js";
import type { Deps } from "../../deps.js";
import { AppError, unavailable } from "../../errors.js";
import {
  type EventFilter,
  matches,
  newestPosition,
  readPage,
  requireReached,
  toEvent,
} from "../../events/log.js";
import { createConcurrencyLimit, createCounts } from "../../scheduling.js";

/**
 * Whether the agent has a stake, or is a party to an open contract, matched if `isMatched`. Room is kept for it that free
 * addresses cannot take.
 */
export async function isParty(
  db: Executor,
  agent: Address,
  { isMatched = false }: { isMatched?: boolean } = {},
): Promise<boolean> {
  const begun = isMatched ? sql`matched_at is not null` : sql`phase <> 'none'`;
  const isOpen = sql`${begun} and ended_at is null and not settled`;
  const { rows } = await db.execute<{ party: boolean }>(sql`
    select exists (select 1 from onchain.working_contract where client = ${agent} and ${isOpen})
      or exists (select 1 from onchain.working_contract where worker = ${agent} and ${isOpen})
      or exists (select 1 from onchain.stake where agent = ${agent} and amount > 0) as party`);
  return rows[0]?.party === true;
}

interface StreamRequest {
  caller: Address;
  /** Null means from now on. */
  after: bigint | null;
  filter: EventFilter;
  signal: AbortSignal;
  /** Streams with the same key share a limit; the caller's address by default. */
  countedAs?: string | undefined;
  /** Whether the caller's key is still active; absent for a reader without a key. */
  isSignedIn?: () => Promise<boolean>;
  /** Streams of strangers share a limit per IP address, and those of parties another. */
  ip: string;
}

export type EventStreams = ReturnType<typeof createEventStreams>;

/** Events in one chunk, and in one read of the database. */
const PAGE = 100;
/** Concurrency limit for database reads of old events. */
const MAX_READING = 4;
/** Share of a process's streams for one IP address, and for all agents without an open contract or a stake. */
const IP_SHARE = 0.05;
const STRANGERS_SHARE = 0.75;
/** Share that an IP address has in addition for parties: contracts are cheap, too. */
const PARTIES_SHARE = 0.25;
/** Pause before a reader with a broken connection reconnects. */
const RETRY_MS = 2_000;

type Kind = "stranger" | "party";

/** Counts the open streams of this process, of each IP address and of each caller, and limits them. */
function createStreamLimits(maxStreams: number) {
  const open = createCounts();
  const ofIp = (share: number) => Math.max(LIMITS.streamsPerAgent, Math.floor(maxStreams * share));
  const perIp = { stranger: ofIp(IP_SHARE), party: ofIp(PARTIES_SHARE) };
  const inAll = { stranger: Math.floor(maxStreams * STRANGERS_SHARE), party: maxStreams };
  let total = 0;

  const isIpFull = (kind: Kind, ip: string) => open.count(`${kind} ${ip}`) >= perIp[kind];
  const count = (kind: Kind, caller: string, ip: string, number: number): void => {
    open.add(caller, number);
    open.add(`${kind} ${ip}`, number);
    total += number;
  };

  return {
    /** Whether a stranger gets no stream. Addresses are free: one IP address could take every stream with many of them. */
    isFull: (ip: string): boolean => total >= inAll.stranger || isIpFull("stranger", ip),
    /** Counts a stream and returns the function that releases it; throws 429 `too_many_streams`, or 503 if the process is full. */
    open(kind: Kind, caller: string, ip: string): () => void {
      const own = open.count(caller);
      if (own >= LIMITS.streamsPerAgent) {
        throw new AppError("too_many_streams", {
          message: `You have ${own} open streams, the maximum; close one first.`,
          retryAfterSeconds: 5,
        });
      }
      if (isIpFull(kind, ip)) {
        const agents = kind === "party" ? "agents with" : "agents without";
        throw new AppError("too_many_streams", {
          message: `Your IP address has ${perIp[kind]} open streams, the maximum for ${agents} an open contract or a stake. Close one first, or poll GET /v1/events.`,
          retryAfterSeconds: 5,
        });
      }
      if (total >= inAll[kind]) {
        throw unavailable("The service has no free event stream. Poll GET /v1/events, or retry.", 5);
      }
      count(kind, caller, ip, 1);
      return () => count(kind, caller, ip, -1);
    },
  };
}

/** Server-sent events of the log, for at most `maxStreams` readers of this process. */
export function createEventStreams(
  { db, feed }: Pick<Deps, "db" | "feed">,
  {
    maxStreams,
    heartbeatMs = LIMITS.streamHeartbeat * 1000,
    lifetimeMs = LIMITS.streamLifetime * 1000,
  }: { maxStreams: number; heartbeatMs?: number; lifetimeMs?: number },
) {
  const limits = createStreamLimits(maxStreams);
  const reading = createConcurrencyLimit(MAX_READING);

  /** Chunks of text/event-stream. The first comes at once, or throws `invalid_request`, 429 `too_many_streams`, or 503 if full. */
  async function* run({
    caller,
    after,
    filter,
    signal,
    countedAs = caller,
    ip,
    isSignedIn,
  }: StreamRequest): AsyncGenerator<string, void> {
    // Another process can have sent the reader an event that this one has not seen yet.
    if (after !== null && after > feed.newest()) requireReached(after, await newestPosition(db));
    let at = after ?? feed.newest();
    const kind = limits.isFull(ip) && (await isParty(db, caller)) ? "party" : "stranger";
    const release = limits.open(kind, countedAs, ip);
    const endsAt = performance.now() + lifetimeMs;
    try {
      yield `retry: ${RETRY_MS}\n${heartbeat(at)}`;
      let sentAt = performance.now();
      while (!signal.aborted && !feed.stopped.aborted && performance.now() < endsAt) {
        if (isSignedIn !== undefined && !(await isSignedIn())) return;
        const fresh = feed.after(at)?.slice(0, PAGE);
        const from = at;
        const { rows, end } =
          fresh === undefined
            ? await reading(() =>
                readPage(db, { filter, reader: caller, after: from, limit: PAGE, newest: feed.newest() }),
              )
            : {
                rows: fresh.filter((row) => matches(row, filter, caller)),
                end: fresh.at(-1)?.position ?? at,
              };
        at = end;
        const restMs = sentAt + heartbeatMs - performance.now();
        // The id of a heartbeat advances a reader whose filter matches none of many events.
        if (rows.length > 0) yield rows.map((row) => text(toEvent(row))).join("");
        else if (restMs <= 0) yield heartbeat(at);
        else {
          if (fresh?.length === 0) await feed.wait(at, { timeoutMs: restMs, signal });
          continue;
        }
        sentAt = performance.now();
      }
    } finally {
      release();
    }
  }

  return { open: run };
}

const text = (event: ReturnType<typeof toEvent>): string =>
  `event: ${event.type}\nid: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`;

const heartbeat = (position: bigint): string => `id: ${position}\n: heartbeat\n\n`;

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
  return c.body(bodyOf(c, first.value ?? "", chunks, { closing, stallMs }), 200, HEADERS);
}

/** Requests a chunk only after the reader has taken the one before, and drops a reader that stalls for too long. */
function bodyOf(
  c: Context,
  first: string,
  chunks: AsyncGenerator<string, void>,
  { closing, stallMs }: { closing: AbortController; stallMs: number },
): ReadableStream<Uint8Array> {
  const { incoming, outgoing } = (c.env ?? {}) as Partial<HttpBindings>;
  const socket = incoming?.socket;
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
          outgoing?.destroy();
          void close();
        }, stallMs).unref();
      },
      cancel: close,
    },
    { highWaterMark: 0 },
  );
}
