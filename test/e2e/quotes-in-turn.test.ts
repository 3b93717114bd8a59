/**
 * Quotes take turns, so that payments get ahead of those that wait. How long a turn lasts:
 * test/unit/features/concurrency-limit.
 */
import pg from "pg";
import type { Address } from "viem";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createConcurrencyLimit } from "../../src/scheduling.js";
import { draft, newPair } from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { startApi } from "../support/stack.js";
import { openScene, useWorld } from "../support/world.js";

const query = pg.Client.prototype.query;
const world = await useWorld();
/** Turns without a time limit. */
const inQuoteTurn = createConcurrencyLimit(4);
const service = await startApi(world.info, { inQuoteTurn });
const scene = await openScene({ ...world.target, url: service.url });
const { client, worker } = await newPair(scene);

/** Statements for quotes of these callers, whose responses the test holds back, and how many quotes share each. */
let held: { quotes: number; pass(): void }[] | null = null;
let heldCallers: string[] = [client.address];
const heldQuotes = () => held?.reduce((sum, { quotes }) => sum + quotes, 0);
/** Callers of each statement that stored attempts. */
let stored: string[][] = [];

/** Responses that are let pass together arrive in one turn of the event loop. */
function letPass(): void {
  for (const { pass } of held ?? []) pass();
  held = null;
}

beforeAll(() => {
  type Respond = (...response: unknown[]) => void;
  type Args = [{ name?: string; values?: unknown[] }, unknown, Respond];
  pg.Client.prototype.query = function (this: pg.Client, ...args: Args) {
    const [statement, settings, respond] = args;
    const { name, values = [] } = statement;
    type Call = { caller: Address; kind?: string };
    const callsOf = (wanted: string): Call[] => (name === wanted ? JSON.parse(String(values[0])) : []);
    const attempts = callsOf("creation_attempt_stored");
    if (attempts.length > 0) stored.push(attempts.map(({ caller }) => caller));
    const isHeld = ({ caller, kind }: Call) => heldCallers.includes(caller) && kind === "create";
    const quotes = callsOf("outbox_state").filter(isHeld).length;
    const send = (...all: unknown[]) => (query as (...all: unknown[]) => unknown).apply(this, all);
    if (held === null || quotes === 0) return send(...args);
    return send(statement, settings, (...response: unknown[]) => {
      const pass = () => respond(...response);
      if (held === null) pass();
      else held.push({ quotes, pass });
    });
  } as never;
});
afterEach(() => {
  letPass();
  heldCallers = [client.address];
});
afterAll(async () => {
  pg.Client.prototype.query = query;
  await service.stop();
});

test("a payment passes quotes that hang, and the quotes that wait behind them", async () => {
  const { send } = await signedCall(worker, "/v1/contracts", await draft(world), world);
  const drafts = await Promise.all(Array.from({ length: 5 }, () => draft(world)));
  held = [];
  const quotes = drafts.map((one) => client.post("/v1/contracts", JSON.stringify(one)));
  await expect.poll(heldQuotes).toBe(4);

  expect((await send()).status).toBe(200);

  expect(heldQuotes()).toBe(4);

  letPass();
  expect((await Promise.all(quotes)).map(({ status }) => status)).toEqual([402, 402, 402, 402, 402]);
});

test("attempts that are ready in one turn of the event loop share a statement, but not those of one caller", async () => {
  const { client, worker } = await newPair(scene);
  const drafts = await Promise.all(Array.from({ length: 3 }, () => draft(world)));
  heldCallers = [client.address, worker.address];
  held = [];
  const quotes = [client, client, worker].map((agent, i) =>
    agent.post("/v1/contracts", JSON.stringify(drafts[i])),
  );
  await expect.poll(heldQuotes).toBe(3);
  stored = [];

  letPass();

  expect((await Promise.all(quotes)).map(({ status }) => status)).toEqual([402, 402, 402]);
  const { address } = client;
  expect(stored.map((callers) => callers.toSorted())).toContainEqual([address, worker.address].toSorted());
  expect(stored.map((callers) => callers.filter((caller) => caller === address))).toEqual([
    [address],
    [address],
  ]);
});
