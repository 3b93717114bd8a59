/**
 * Quotes take turns, so that payments get ahead of those that wait. How long a turn lasts:
 * test/unit/features/concurrency-limit.
 */
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { parseConfig } from "../../src/config.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { createConcurrencyLimit } from "../../src/scheduling.js";
import { freePort } from "../../tools/local/ports.js";
import { draft, newPair } from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { serviceEnvironment } from "../support/stack.js";
import { openScene, useWorld } from "../support/world.js";

const query = pg.Client.prototype.query;
const world = await useWorld();
const network = { ...world.info, wsRpcUrl: world.info.rpcUrl.replace("http", "ws") };
const environment = { ...serviceEnvironment(network, await freePort()), ROLES: "api" };
/** Turns without a time limit. */
const quoting = createConcurrencyLimit(4);
const service = await createService(parseConfig(environment), { logger: createLogger("fatal"), quoting });
const { client, worker } = await newPair(await openScene({ ...world.target, url: service.url }));

/** Statements for quotes of the Client, which hang until the test lets them pass, and how many quotes share each. */
let held: { quotes: number; pass(): void }[] | null = null;
const heldQuotes = () => held?.reduce((sum, { quotes }) => sum + quotes, 0);

beforeAll(() => {
  pg.Client.prototype.query = function (this: pg.Client, ...args: [{ name?: string; values?: unknown[] }]) {
    const send = () => (query as (...all: unknown[]) => unknown).apply(this, args);
    const [{ name, values = [] }] = args;
    const calls = name === "outbox_state" ? JSON.parse(String(values[0])) : [];
    const isQuote = (call: { caller: string; kind?: string }) =>
      call.caller === client.address && call.kind === "create";
    const quotes = calls.filter(isQuote).length;
    if (held === null || quotes === 0) return send();
    return new Promise((resolve) => held?.push({ quotes, pass: () => resolve(send()) }));
  } as never;
});
afterEach(() => {
  for (const { pass } of held ?? []) pass();
  held = null;
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

  for (const { pass } of held) pass();
  held = null;
  expect((await Promise.all(quotes)).map(({ status }) => status)).toEqual([402, 402, 402, 402, 402]);
});
