import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createConcurrencyLimit, createFairConcurrencyLimit } from "../../../src/scheduling.js";

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
  const limit = createConcurrencyLimit(2);
  const tasks = [task(), task(), task()];
  const running = tasks.map(({ run }) => limit(run));
  expect(tasks.map(({ isRunning }) => isRunning())).toEqual([true, true, false]);
  tasks[0]?.end();
  await running[0];
  await expect.poll(() => tasks[2]?.isRunning()).toBe(true);
  for (const { end } of tasks) end();
  await Promise.all(running);
});

it("gives the place of a failed task to the next", async () => {
  const limit = createConcurrencyLimit(1);
  const fail = limit(() => Promise.reject(new Error("failed")));
  const next = limit(async () => "done");
  await expect(fail).rejects.toThrow("failed");
  expect(await next).toBe("done");
});

describe("a concurrency limit with patience", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("lets the next task replace one that takes too long, once", async () => {
    const limit = createConcurrencyLimit(1, { maxCountedMs: 250 });
    const [slow, next, last] = [task(), task(), task()];
    const running = [slow, next, last].map(({ run }) => limit(run));
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

  it("starts a task beyond the limit once it has waited too long", async () => {
    const limit = createConcurrencyLimit(1, { maxWaitMs: 1000 });
    const [first, patient, later] = [task(), task(), task()];
    const running = [first, patient].map(({ run }) => limit(run));
    await vi.advanceTimersByTimeAsync(1000);
    expect(patient.isRunning()).toBe(true);
    patient.end();
    await running[1];
    // It was not counted, so its end lets no other start.
    running.push(limit(later.run));
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

describe("a fair concurrency limit", () => {
  const options = { maxWaiting: 6, maxWaitingPerIp: 3, refuse: () => new Error("full") };
  /** Callers `a1` and `a2` share the IP address `a`. */
  const create = (count: number) => {
    const limit = createFairConcurrencyLimit(count, options);
    return <T>(caller: string, run: () => Promise<T>) => limit({ ip: caller.slice(0, 1), caller }, run);
  };

  it("runs one task of each client, so that one with many tasks delays only its own", async () => {
    const limit = create(2);
    const greedy = [task(), task(), task()];
    const other = task();
    const all = [...greedy.map(({ run }) => limit("greedy", run)), limit("other", other.run)];
    expect(greedy.map(({ isRunning }) => isRunning())).toEqual([true, false, false]);
    expect(other.isRunning()).toBe(true);
    for (const { end } of [...greedy, other]) end();
    await Promise.all(all);
  });

  it("gives clients their turns, however many tasks came first", async () => {
    const limit = create(1);
    const order: string[] = [];
    const add = (key: string) => limit(key, async () => void order.push(key));
    await Promise.all([add("a"), add("a"), add("a"), add("a"), add("b"), add("c")]);
    expect(order).toEqual(["a", "a", "b", "c", "a", "a"]);
  });

  it("gives the callers of a client their turns", async () => {
    const limit = create(1);
    const order: string[] = [];
    const add = (caller: string) => limit(caller, async () => void order.push(caller));
    const most = ["a1", "a1", "a1", "a1"].map(add);
    // The client's queue is full: the newest task of the caller that has most makes room.
    await Promise.all([add("a2"), expect(most[3]).rejects.toThrow("full"), ...most.slice(0, 3)]);
    expect(order).toEqual(["a1", "a1", "a2", "a1"]);
  });

  it("refuses a client that has too many waiting tasks, and not the first of a client", async () => {
    const limit = create(1);
    const first = task();
    const done: string[] = [];
    const add = (client: string) => {
      const run = limit(client, async () => void done.push(client));
      run.catch(() => {});
      return run;
    };
    const running = [limit("z", first.run), add("a"), add("a"), add("a")];
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

  it("refuses even the first of a client once twice as many wait, each of another client", async () => {
    const limit = create(1);
    const first = task();
    const running = [
      limit("z", first.run),
      ..."abcdefghijkl".split("").map((client) => limit(client, async () => {})),
    ];
    await expect(limit("m", async () => {})).rejects.toThrow("full");
    first.end();
    await Promise.all(running);
  });
});
