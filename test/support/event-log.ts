/** The log of events as an agent reads it: page by page, and as a stream. */
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

/** A minimal reader of server-sent events. It keeps every message since it was opened. */
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
  let last = "";
  const take = (block: string): void => {
    const fields = new Map(
      block.split("\n").map((line): [string, string] => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }),
    );
    last = fields.get("id") ?? last;
    const data = fields.get("data");
    if (data !== undefined)
      messages.push({ id: last, event: fields.get("event") ?? "message", data: JSON.parse(data) });
  };
  const read = async (): Promise<void> => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) take(block);
    }
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
