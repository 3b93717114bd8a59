import pino from "pino";
import { expect, it } from "vitest";
import type { Subscriber } from "../../src/db/client.js";
import { createLoop, createPause } from "../../src/scheduling.js";

const HOUR = 3_600_000;

function channel() {
  const subscribers = new Set<Subscriber>();
  return {
    notifications: {
      listen(_name: string, subscriber: Subscriber) {
        subscribers.add(subscriber);
        return () => void subscribers.delete(subscriber);
      },
    },
    notify: () => {
      for (const { onNotification } of subscribers) onNotification("");
    },
    count: () => subscribers.size,
  };
}

it("ends a pause on a notification, also on one that came before it", async () => {
  const { notifications, notify } = channel();
  const pause = createPause({ notifications, channels: ["news"] });
  const { signal } = new AbortController();
  const waiting = pause.wait(HOUR, signal);
  notify();
  expect(await waiting).toBe(true);
  notify();
  expect(await pause.wait(HOUR, signal)).toBe(true);
  expect(await pause.wait(1, signal)).toBe(false);
  expect(await pause.wait(HOUR, AbortSignal.abort())).toBe(false);
});

it("runs a round for a notification that arrives during one, and stops listening in the end", async () => {
  const { notifications, notify, count } = channel();
  let rounds = 0;
  const finished = new Promise<void>((resolve) => {
    const loop = createLoop({
      name: "test",
      logger: pino({ level: "silent" }),
      intervalMs: HOUR,
      maxBackoffMs: HOUR,
      wakers: { notifications, channels: ["news"] },
      round: async () => {
        rounds += 1;
        if (rounds < 3) notify();
        else void loop.stop().then(resolve);
      },
    });
    loop.start();
  });
  await finished;
  expect(rounds).toBe(3);
  expect(count()).toBe(0);
});

it("leaves nothing of a pause at the signal that outlives all pauses", async () => {
  const { notifications } = channel();
  const pause = createPause({ notifications, channels: ["news"] });
  const { signal } = new AbortController();
  for (let round = 0; round < 10; round++) await pause.wait(0, signal);
  // Node keeps what depends on a signal in a set.
  const sizes = Object.getOwnPropertySymbols(signal).map(
    (name) => (signal as never)[name] as { size?: number },
  );
  expect(sizes.filter((kept) => kept?.size)).toEqual([]);
});
