import { expect, test } from "vitest";
import { takeIndexerLock } from "../../src/indexer/supervision/indexer.js";
import { useDatabase } from "../support/database.js";

const { pool } = await useDatabase();

test("an indexer need not wait for the clock of the former one's host, if that was ahead", async () => {
  const url = String(pool.options.connectionString);
  await pool.query(`create schema held; create table held._ponder_meta as
    select 'app' as key, '{"is_locked": 1, "heartbeat_at": 9999999999999}'::jsonb as value`);
  const before = Date.now();
  await takeIndexerLock(url, "held", { onWaiting() {}, onLost() {} });
  const { rows } = await pool.query("select value from held._ponder_meta");
  expect(rows[0].value).toMatchObject({ is_locked: 1 });
  expect(rows[0].value.heartbeat_at).toBeGreaterThanOrEqual(before);
  expect(rows[0].value.heartbeat_at).toBeLessThanOrEqual(Date.now());
});
