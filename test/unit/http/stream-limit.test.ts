import { expect, test } from "vitest";
import { createApp } from "../../../src/http/app.js";
import { createLogger } from "../../../src/logger.js";
import { AUTHORIZED, CALLER, testConfig } from "./fixtures.js";

test("the streams of the API and of the pages count towards one limit", async () => {
  const stranger = { execute: async () => ({ rows: [{ party: false }] }) };
  const app = createApp({
    // Nine of them for strangers.
    config: testConfig({ EVENT_STREAMS: "12" }),
    logger: createLogger("silent", { write: () => {} }),
    keys: { isKept: () => true, ownerOf: async () => CALLER },
    deployment: { domain: "contracts.example", chainId: 84_532, asset: { symbol: "TUSD" } },
    readDb: stranger,
    feed: { newest: () => 0n, after: () => [], stopped: new AbortController().signal },
  } as never);
  const onPages = () => app.request("/live");
  const onApi = () => app.request("/v1/events/stream", { headers: AUTHORIZED });

  const open = await Promise.all([
    ...Array.from({ length: 5 }, onPages),
    ...Array.from({ length: 4 }, onApi),
  ]);
  expect(open.map(({ status }) => status)).toEqual(Array(9).fill(200));
  expect((await onApi()).status).toBe(503);
  expect((await onPages()).status).toBe(503);

  await open[0]?.body?.cancel();
  expect((await onApi()).status).toBe(200);
});
