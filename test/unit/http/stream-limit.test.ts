import { expect, test } from "vitest";
import type { EventRow } from "../../../src/events/log.js";
import { createEventStreams } from "../../../src/features/events/stream-events.js";
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

test("a stream whose filter matches nothing of a busy log has its heartbeats, and advances", async () => {
  let newest = 0n;
  const feed = {
    newest: () => newest,
    after: (position: bigint) =>
      position < newest ? [{ position: newest, type: "contract.created", visibleTo: null }] : [],
    // An event arrives long before each heartbeat.
    wait: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      newest += 1n;
    },
    stopped: new AbortController().signal,
  };
  const { signal } = new AbortController();
  const streams = createEventStreams({ db: {}, feed } as never, { maxStreams: 40, heartbeatMs: 200 });
  const request = { caller: `0x${"5".repeat(40)}`, after: 0n, ip: "192.0.2.1", signal } as const;
  const chunks = streams.open({ ...request, filter: { types: ["payout.paid" as EventRow["type"]] } });
  const ids: bigint[] = [];
  for (let count = 0; count < 3; count++) {
    const { value = "" } = await chunks.next();
    expect(value).toContain(": heartbeat");
    ids.push(BigInt(/^id: (\d+)$/m.exec(value)?.[1] ?? -1));
  }
  await chunks.return();
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => (a < b ? -1 : 1)));
});
