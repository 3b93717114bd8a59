import { expect, it } from "vitest";
import { createSlots } from "../../../src/slots.js";

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

it("runs up to the limit at once, then the others in turn, and rejects the excess", async () => {
  const slots = createSlots(2, {
    maxWaiting: 1,
    refuse() {
      throw new Error("full");
    },
  });
  const tasks = [task(), task(), task()];
  const running = tasks.map(({ run }) => slots(run));
  await expect(slots(task().run)).rejects.toThrow("full");
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
