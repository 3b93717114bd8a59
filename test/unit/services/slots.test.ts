import { describe, expect, it } from "vitest";
import { createFairSlots, createSlots } from "../../../src/slots.js";

/** A task that runs until the test ends it. */
function task() {
  let end: () => void = () => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  let isRunning = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    await done;
    isRunning = false;
  };
  return { run, end, isRunning: () => isRunning };
}

it("runs up to the limit at once, then the others in turn", async () => {
  const slots = createSlots(2);
  const tasks = [task(), task(), task()];
  const running = tasks.map(({ run }) => slots(run));
  expect(tasks.map(({ isRunning }) => isRunning())).toEqual([true, true, false]);
  tasks[0]?.end();
  await running[0];
  await expect.poll(() => tasks[2]?.isRunning()).toBe(true);
  for (const { end } of tasks) end();
  await Promise.all(running);
});

it("gives the place of a failed task to the next", async () => {
  const slots = createSlots(1);
  const fail = slots(() => Promise.reject(new Error("failed")));
  const next = slots(async () => "done");
  await expect(fail).rejects.toThrow("failed");
  expect(await next).toBe("done");
});

describe("fair slots", () => {
  const full = () => {
    throw new Error("full");
  };
  const options = { maxWaiting: 6, maxWaitingPerKey: 3, refuse: full };

  it("run one task of each key, so that a key with many tasks delays only its own", async () => {
    const slots = createFairSlots(2, options);
    const greedy = [task(), task(), task()];
    const other = task();
    const all = [...greedy.map(({ run }) => slots("greedy", run)), slots("other", other.run)];
    expect(greedy.map(({ isRunning }) => isRunning())).toEqual([true, false, false]);
    expect(other.isRunning()).toBe(true);
    for (const { end } of [...greedy, other]) end();
    await Promise.all(all);
  });

  it("give keys their turns, however many tasks came first", async () => {
    const slots = createFairSlots(1, options);
    const order: string[] = [];
    const add = (key: string) => slots(key, async () => void order.push(key));
    await Promise.all([add("a"), add("a"), add("a"), add("a"), add("b"), add("c")]);
    expect(order).toEqual(["a", "a", "b", "c", "a", "a"]);
  });

  it("refuse a key that has too many waiting tasks, and everyone if all have", async () => {
    const slots = createFairSlots(1, options);
    const first = task();
    const running = [first.run, ...Array(3).fill(async () => {})].map((run) => slots("a", run));
    await expect(slots("a", async () => {})).rejects.toThrow("full");
    running.push(...["b", "c", "d"].map((key) => slots(key, async () => {})));
    await expect(slots("e", async () => {})).rejects.toThrow("full");
    first.end();
    await Promise.all(running);
    await slots("a", async () => {});
  });
});
