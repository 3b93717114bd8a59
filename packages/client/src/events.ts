/** The event log as an async iterator, and webhooks that push the same events. */
import { ConnectionError, isOutage } from "./errors.js";
import { MAX_BYTES, MIN_PAUSE_MS, parse, pause, readText, refusalOf } from "./http.js";
import { bytesOf } from "./payment.js";
import { call, dataOf, requestOf, type Session } from "./session.js";
import type { ContractEvent, EventQuery, WebhookChanges, WebhookDraft } from "./types.js";

/** Without filters, the events of all contracts are followed. */
export interface EventOptions extends EventQuery {
  signal?: AbortSignal;
  /** Called when the stream breaks and is resumed, or replaced by polling, with the reason. */
  onInterruption?: (reason: string) => void;
}

const POLL_MS = 2000;
/** A stream this silent has broken unnoticed: heartbeats come every 15 seconds. */
const SILENCE_MS = 45_000;
/** Streams that fail in a row before the log is polled, and polls before a stream is tried again. */
const STREAM_TRIES = 2;
const POLLS = 30;
/** The pause between tries doubles so often: to a minute. */
const DOUBLINGS = 5;

/** Every event after `after`, once, in order and through outages, until `signal` is aborted. Throws ServiceError if refused. */
export async function* followEvents(
  session: Session,
  { signal, onInterruption, after, ...filter }: EventOptions = {},
): AsyncGenerator<ContractEvent, void> {
  const bounded = { ...session, http: session.http.until(signal) };
  let position = after === "latest" ? undefined : after;
  let failures = 0;
  const isAborted = (): boolean => signal?.aborted === true;
  while (!isAborted()) {
    let reason = "the stream ended";
    try {
      // A break before the first position would lose what happened since, so it begins at a known one.
      position ??= (await call(bounded, "GET /v1/events", { query: { after: "latest" } })).nextAfter;
      if (failures < STREAM_TRIES) {
        let isSilent = true;
        for await (const { id, data } of openStream(session, { ...filter, after: position }, signal)) {
          position = id;
          failures = 0;
          isSilent = false;
          if (data !== null) yield data;
        }
        if (isSilent) broken(new Error("the stream ended before anything came"));
      } else {
        for (let poll = 0; poll < POLLS; poll++) {
          const query: EventQuery = { ...filter, after: position };
          const page = await call(bounded, "GET /v1/events", { query });
          position = page.nextAfter;
          failures = STREAM_TRIES;
          yield* page.data;
          if (!page.hasMore) await pause(POLL_MS, signal);
        }
        failures = 0;
        continue;
      }
    } catch (error) {
      if (isAborted()) return;
      if (!isOutage(error)) throw error;
      failures += 1;
      reason = error.message;
    }
    onInterruption?.(reason);
    const doublings = Math.min(Math.max(failures - STREAM_TRIES, 0), DOUBLINGS);
    await pause(failures === 0 ? MIN_PAUSE_MS : POLL_MS * 2 ** doublings, signal).catch(() => {});
  }
}

const broken = (cause: Error): never => {
  throw new ConnectionError(cause.message, { cause });
};

/** One connection: each event, and heartbeats as a position without an event. */
async function* openStream(
  session: Session,
  query: EventQuery,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ id: string; data: ContractEvent | null }, void> {
  const request = requestOf(session, "GET /v1/events/stream", { query });
  const closing = new AbortController();
  let reader: ReadableStreamDefaultReader<string> | undefined;
  const close = (reason?: Error): void => {
    closing.abort(reason);
    // As in `readText`: the signal does not always end a body.
    reader?.cancel().catch(() => {});
  };
  const stop = (): void => close();
  const heard = async <T>(waiting: Promise<T>): Promise<T> => {
    const timer = setTimeout(
      () => close(new Error(`nothing came for ${SILENCE_MS / 1000} seconds`)),
      SILENCE_MS,
    );
    return waiting.catch(broken).finally(() => clearTimeout(timer));
  };
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const response = await heard(session.http.open(request, closing.signal));
    if (!response.ok || response.body === null)
      throw refusalOf(response, parse(await heard(readText(response, closing.signal))));
    /** Of the message that has begun: to search it again with each piece would take quadratic time. */
    let pieces: string[] = [];
    let size = 0;
    reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await heard(reader.read());
      if (closing.signal.aborted) broken(closing.signal.reason);
      if (done) return;
      const end = pieces.at(-1)?.at(-1) ?? "";
      pieces.push(value);
      size += value.length;
      if (size > MAX_BYTES) broken(new Error(`an event is longer than ${MAX_BYTES} bytes`));
      if (!(end + value).includes("\n\n")) continue;
      const messages = pieces.join("").split("\n\n");
      pieces = [messages.pop() ?? ""];
      size = pieces[0]?.length ?? 0;
      for (const message of messages) {
        const fieldOf = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(message)?.[1];
        const [id, data] = [fieldOf("id"), fieldOf("data")];
        if (id !== undefined)
          yield { id, data: data === undefined ? null : (JSON.parse(data) as ContractEvent) };
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

/** The caller's own webhooks (Standard Webhooks). Each call throws ServiceError if the service refuses it. */
export function webhooks(session: Session) {
  return {
    /** Sends events to a URL from now on. The response alone contains the secret for {@link verifyWebhook}. */
    create: (draft: WebhookDraft) => dataOf(session, "POST /v1/agents/me/webhooks", { body: draft }),
    list: () => dataOf(session, "GET /v1/agents/me/webhooks"),
    get: (id: string) => dataOf(session, "GET /v1/agents/me/webhooks/{id}", { path: { id } }),
    /** Changes, disables or enables a webhook. */
    update: (id: string, changes: WebhookChanges) =>
      dataOf(session, "PATCH /v1/agents/me/webhooks/{id}", { path: { id }, body: changes }),
    remove: (id: string) => dataOf(session, "DELETE /v1/agents/me/webhooks/{id}", { path: { id } }),
    /** Sends one event again, or everything after one. */
    replay: (id: string, what: { eventId: string } | { after: string }) =>
      dataOf(session, "POST /v1/agents/me/webhooks/{id}/replay", { path: { id }, body: what }),
  };
}

const encoder = new TextEncoder();
const WEBHOOK_TOLERANCE_SECONDS = 300;

const inAnyCase = <T>(headers: Record<string, T>, name: string): T | undefined =>
  Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];

/** The event of a webhook (Standard Webhooks); `body` as received. Throws unless `secret` signed it within five minutes. */
export async function verifyWebhook(
  secret: string,
  { headers, body }: { headers: Headers | Record<string, string | string[] | undefined>; body: string },
): Promise<ContractEvent> {
  const headerOf = (name: string): string =>
    String((headers instanceof Headers ? headers.get(name) : inAnyCase(headers, name)) ?? "");
  const [id, timestamp] = [headerOf("webhook-id"), headerOf("webhook-timestamp")];
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= WEBHOOK_TOLERANCE_SECONDS))
    throw new Error(`The webhook-timestamp is ${timestamp || "missing"}, not current`);
  const key = await crypto.subtle.importKey(
    "raw",
    bytesOf(secret.replace(/^whsec_/, "")),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  const signed = encoder.encode(`${id}.${timestamp}.${body}`);
  for (const signature of headerOf("webhook-signature").split(" ")) {
    const [version, text = ""] = signature.split(",");
    if (version === "v1" && (await crypto.subtle.verify("HMAC", key, bytesOf(text), signed)))
      return JSON.parse(body) as ContractEvent;
  }
  throw new Error("The webhook message is not signed with this secret");
}
