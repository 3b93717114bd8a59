/** Statements that calls share, in sequence: each waits for the one before it, but not for one that hangs. */
import { setImmediate } from "node:timers/promises";
import { sql } from "drizzle-orm";
import { expect, it, onTestFinished, vi } from "vitest";
import { databaseOn } from "../../src/db/client.js";
import { prepareShapes, prepareShared, sharedCalls } from "../../src/db/statements.js";

const statement = prepareShared<{ value: string }>(
  "in_sequence",
  sql`select call.n, call.value from ${sharedCalls({ value: "text" })}`,
  { inSequence: true },
);

/** A database whose queries end when the test ends them. Each returns a row for each of its calls. */
function openDatabase() {
  const ends: (() => void)[] = [];
  const query = vi.fn(
    ({ values: [calls = "[]"] }: { values: string[] }) =>
      new Promise((resolve) => ends.push(() => resolve({ rows: JSON.parse(calls) as unknown[] }))),
  );
  return { query, ends, db: databaseOn({ query } as never) };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await setImmediate();
}

it("calls of one turn share a statement, and those of the next turn wait for its end", async () => {
  const { query, ends, db } = openDatabase();
  const first = [statement(db, { value: "a" }), statement(db, { value: "b" })];
  await turns(3);
  const second = statement(db, { value: "c" });
  await turns(3);
  expect(query).toHaveBeenCalledTimes(1);
  ends[0]?.();
  expect(await Promise.all(first)).toEqual([[{ value: "a" }], [{ value: "b" }]]);
  await expect.poll(() => ends.length).toBe(2);
  ends[1]?.();
  expect(await second).toEqual([{ value: "c" }]);
});

it("a statement that hangs does not stop the next ones", async () => {
  const { query, ends, db } = openDatabase();
  const hung = statement(db, { value: "a" });
  for (const value of ["b", "c"]) {
    await turns(3);
    const next = statement(db, { value });
    await expect.poll(() => query.mock.lastCall?.[0].values[0], { timeout: 10_000 }).toContain(value);
    ends.at(-1)?.();
    expect(await next).toEqual([{ value }]);
  }
  ends[0]?.();
  expect(await hung).toEqual([{ value: "a" }]);
});

it("statements of shapes that callers choose are kept up to a weight, and others get their turn after a while", async () => {
  const query = vi.fn(async (_query: { name?: string }) => ({ rows: [] }));
  const db = databaseOn({ query } as never);
  const statementOf = prepareShapes("shaped");
  const run = async (shape: number, weight = 8) => {
    const { run, isKept } = statementOf(String(shape), () => ({ text: sql`select ${shape}`, weight }));
    await run(db, {});
    return [isKept, query.mock.lastCall?.[0].name];
  };
  for (let shape = 0; shape < 15; shape++) expect(await run(shape)).toEqual([true, `shaped_0_${shape}`]);
  expect(await run(15)).toEqual([false, undefined]);
  expect(await run(14)).toEqual([true, "shaped_0_14"]);
  const now = vi.spyOn(performance, "now").mockReturnValue(performance.now() + 601_000);
  onTestFinished(() => now.mockRestore());
  expect(await run(15)).toEqual([true, "shaped_1_0"]);
});
