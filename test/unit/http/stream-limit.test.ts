import { expect, test } from "vitest";
import { AUTHORIZED, testApp } from "./fixtures.js";

test("the streams of the API and of the pages count towards one limit", async () => {
  const readDb = { execute: async () => ({ rows: [{ party: false }] }) };
  const feed = { newest: () => 0n, after: () => [], stopped: new AbortController().signal };
  // Nine of them for strangers.
  const { app } = testApp({ EVENT_STREAMS: "12" }, { readDb, feed });
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
