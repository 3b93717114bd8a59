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

/** Statements for quotes of the client, whose responses the test holds back, and how many quotes share each. */
let held: { quotes: number; pass(): void }[] | null = null;
const heldQuotes = () => held?.reduce((sum, { quotes }) => sum + quotes, 0);

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
    const calls: Call[] = name === "outbox_state" ? JSON.parse(String(values[0])) : [];
    const isHeld = ({ caller, kind }: Call) => caller === client.address && kind === "create";
    const quotes = calls.filter(isHeld).length;
    const send = (...all: unknown[]) => (query as (...all: unknown[]) => unknown).apply(this, all);
    if (held === null || quotes === 0) return send(...args);
    return send(statement, settings, (...response: unknown[]) => {
      const pass = () => respond(...response);
      if (held === null) pass();
      else held.push({ quotes, pass });
    });
  } as never;
});
afterEach(letPass);
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
