/** The log of events as an agent reads it: page by page, and as a stream. */
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { EventView } from "../../src/events/log.js";
import type { EventList } from "../../src/features/events/routes.js";
import { until } from "../../tools/local/processes.js";
import type { Agent } from "./agent.js";
import { readUntil } from "./contracts.js";

interface Message {
  id: string;
  event: string;
  data: { id: string; type: string; contractId: string; data: Record<string, unknown> };
}

export type EventStreamReader = Awaited<ReturnType<typeof openEventStream>>;

/** Keeps every message since it was opened. */
export async function openEventStream(
  url: string,
  { apiKey, lastEventId }: { apiKey: string; lastEventId?: string },
) {
  const closing = new AbortController();
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
    signal: closing.signal,
  });
  const messages: Message[] = [];
  const read = async (): Promise<void> => {
    const events = response.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    for await (const { id = "", event = "message", data } of events ?? [])
      messages.push({ id, event, data: JSON.parse(data) });
  };
  const ended = response.ok ? read().catch(() => undefined) : Promise.resolve();
  return {
    status: response.status,
    headers: response.headers,
    messages,
    ended,
    close: () => closing.abort(),
  };
}

export async function listEvents(agent: Agent, query: string): Promise<EventList> {
  const { status, body } = await agent.get(`/v1/events?${query}`);
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as EventList;
}

/** Every event that the query returns, to the end of the log. */
export async function allEvents(agent: Agent, query: string): Promise<EventView[]> {
  const events: EventView[] = [];
  let after = "0";
  for (;;) {
    const page = await listEvents(agent, `${query}&after=${after}&limit=200`);
    events.push(...page.data);
    after = page.nextAfter;
    if (!page.hasMore) return events;
  }
}

export const latest = async (agent: Agent): Promise<string> =>
  (await listEvents(agent, "after=latest")).nextAfter;

/** Reads a contract's events until one of them has the type. Throws after a minute. */
export const untilEvent = (agent: Agent, id: string, type: string): Promise<EventView[]> =>
  readUntil(
    `there is ${type} of ${id}`,
    () => allEvents(agent, `contractId=${id}`),
    (events) => typesOf(events).includes(type),
  );

export const typesOf = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

/** Waits for a condition. Throws after a minute. */
export const eventually = (what: string, condition: () => Promise<boolean>): Promise<unknown> =>
  until(what, condition, { timeoutMs: 60_000 });
