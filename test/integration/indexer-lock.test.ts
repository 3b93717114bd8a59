/** Decides which of several indexers can fill an index. */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ADVISORY_LOCKS } from "../../src/db/advisory-locks.js";
import { takeIndexerLock } from "../../src/indexer/supervision/indexer-lock.js";
import { sharedStack } from "../support/world.js";

const SOON = { timeout: 30_000 };
const SCHEMAS = ["indexer_lock_test_a", "indexer_lock_test_b"] as const;
let pool: pg.Pool;

beforeAll(() => {
  pool = new pg.Pool({ connectionString: sharedStack().databaseUrl, max: 1 });
  pool.on("error", () => {});
});
afterAll(async () => {
  for (const schema of SCHEMAS) await endHolder(schema);
  await pool.end();
});

/** Ends the connection of the indexer that holds the lock of `schema`. */
async function endHolder(schema: string): Promise<void> {
  await pool.query(
    `select pg_terminate_backend(pid, 5000) from pg_locks
     where locktype = 'advisory' and granted and classid = $1::int::oid and objid = hashtext($2)::oid`,
    [ADVISORY_LOCKS.indexer, schema],
  );
}

it("is held by one indexer per index; when its connection ends, another takes over and it is notified", async () => {
  const calls: string[] = [];
  const take = (name: string, schema: string) =>
    takeIndexerLock(sharedStack().databaseUrl, schema, {
      onWaiting: () => calls.push(`${name} waits`),
      onLost: () => calls.push(`${name} lost it`),
    }).then(() => calls.push(`${name} has it`));
  await take("first", SCHEMAS[0]);
  await take("of another index", SCHEMAS[1]);
  const second = take("second", SCHEMAS[0]);
  await expect.poll(() => calls, SOON).toContain("second waits");
  expect(calls).toEqual(["first has it", "of another index has it", "second waits"]);

  await endHolder(SCHEMAS[0]);

  await second;
  await expect.poll(() => calls.slice(3).sort(), SOON).toEqual(["first lost it", "second has it"]);
});
