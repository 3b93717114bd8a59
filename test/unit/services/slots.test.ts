import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
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

describe("slots with patience", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("pass on the slot of a task that takes too long, once", async () => {
    const slots = createSlots(1, { maxHeldMs: 250 });
    const [slow, next, last] = [task(), task(), task()];
    const running = [slow, next, last].map(({ run }) => slots(run));
    await vi.advanceTimersByTimeAsync(249);
    expect(next.isRunning()).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect([slow.isRunning(), next.isRunning(), last.isRunning()]).toEqual([true, true, false]);
    slow.end();
    await running[0];
    expect(last.isRunning()).toBe(false);
    next.end();
    await running[1];
    await vi.advanceTimersByTimeAsync(0);
    expect(last.isRunning()).toBe(true);
    last.end();
    await running[2];
    expect(vi.getTimerCount()).toBe(0);
  });

  it("start a task without a slot once it has waited too long", async () => {
    const slots = createSlots(1, { maxWaitMs: 1000 });
    const [first, patient, later] = [task(), task(), task()];
    const running = [first, patient].map(({ run }) => slots(run));
    await vi.advanceTimersByTimeAsync(1000);
    expect(patient.isRunning()).toBe(true);
    patient.end();
    await running[1];
    // It had no slot to give back.
    running.push(slots(later.run));
    await vi.advanceTimersByTimeAsync(0);
    expect(later.isRunning()).toBe(false);
    first.end();
    await running[0];
    await vi.advanceTimersByTimeAsync(0);
    expect(later.isRunning()).toBe(true);
    later.end();
    await Promise.all(running);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("fair slots", () => {
  const options = { maxWaiting: 6, maxWaitingPerClient: 3, refuse: () => new Error("full") };
  /** Callers `a1` and `a2` share the client `a`. */
  const create = (count: number) => {
    const slots = createFairSlots(count, options);
    return <T>(caller: string, run: () => Promise<T>) => slots({ client: caller.slice(0, 1), caller }, run);
  };

  it("run one task of each client, so that one with many tasks delays only its own", async () => {
    const slots = create(2);
    const greedy = [task(), task(), task()];
    const other = task();
    const all = [...greedy.map(({ run }) => slots("greedy", run)), slots("other", other.run)];
    expect(greedy.map(({ isRunning }) => isRunning())).toEqual([true, false, false]);
    expect(other.isRunning()).toBe(true);
    for (const { end } of [...greedy, other]) end();
    await Promise.all(all);
  });

  it("give clients their turns, however many tasks came first", async () => {
    const slots = create(1);
    const order: string[] = [];
    const add = (key: string) => slots(key, async () => void order.push(key));
    await Promise.all([add("a"), add("a"), add("a"), add("a"), add("b"), add("c")]);
    expect(order).toEqual(["a", "a", "b", "c", "a", "a"]);
  });

  it("give the callers of a client their turns", async () => {
    const slots = create(1);
    const order: string[] = [];
    const add = (caller: string) => slots(caller, async () => void order.push(caller));
    const most = ["a1", "a1", "a1", "a1"].map(add);
    // The client's queue is full: the newest task of the caller that has most makes room.
    await Promise.all([add("a2"), expect(most[3]).rejects.toThrow("full"), ...most.slice(0, 3)]);
    expect(order).toEqual(["a1", "a1", "a2", "a1"]);
  });

  it("refuse a client that has too many waiting tasks, and never the first of a client", async () => {
    const slots = create(1);
    const first = task();
    const done: string[] = [];
    const add = (client: string) => {
      const run = slots(client, async () => void done.push(client));
      run.catch(() => {});
      return run;
    };
    const running = [slots("z", first.run), add("a"), add("a"), add("a")];
    await expect(add("a")).rejects.toThrow("full");
    const last = [add("b"), add("b"), add("b")].at(-1);
    // Six wait. A newcomer takes the place of whoever has most; then of the next.
    const newcomers = ["c", "d", "e", "f", "g", "h"].map(add);
    await expect(last).rejects.toThrow("full");
    await expect(add("c")).rejects.toThrow("full");
    first.end();
    await Promise.allSettled(running);
    await Promise.all(newcomers);
    expect(done).toEqual(expect.arrayContaining(["a", "b", "c", "d", "e", "f", "g", "h"]));
  });
});
