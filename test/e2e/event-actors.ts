/** Shared by the event tests: reading the log as an agent does. */

import type { EventView } from "../../src/events/read.js";
import type { EventList } from "../../src/features/events/schema.js";
import { until } from "../../src/indexer/supervision/processes.js";
import type { Agent } from "../support/agent.js";

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

/** Reads a contract's events until the newest one has the type. Throws after fifteen seconds. */
export async function untilEvent(agent: Agent, id: string, type: string): Promise<EventView[]> {
  const giveUpAt = performance.now() + 60_000;
  for (;;) {
    const events = await allEvents(agent, `contractId=${id}`);
    if (events.some((event) => event.type === type)) return events;
    if (performance.now() > giveUpAt) {
      throw new Error(`No ${type} of ${id}, only ${events.map((event) => event.type).join(", ")}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export const typesOf = (events: readonly { type: string }[]): string[] => events.map(({ type }) => type);

/** Waits for a condition. Throws after twenty seconds. */
export const eventually = (what: string, condition: () => Promise<boolean>): Promise<unknown> =>
  until(what, condition, { timeoutMs: 20_000 });
