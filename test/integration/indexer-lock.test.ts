/** Which of several indexers can fill an index. */
import pg from "pg";
import { expect, test } from "vitest";
import { ADVISORY_LOCKS } from "../../src/db/client.js";
import { LOCK_SILENCE, takeIndexerLock } from "../../src/indexer/supervision/indexer.js";
import { startTcpProxy } from "../faults/support/tcp-proxy.js";
import { useDatabase } from "../support/database.js";

const { pool } = await useDatabase();
const url = String(pool.options.connectionString);

/** Ends the connection of the indexer that holds the lock of `schema`. */
async function endHolder(schema: string): Promise<void> {
  await pool.query(
    `select pg_terminate_backend(pid, 5000) from pg_locks
     where locktype = 'advisory' and granted
       and classid = ${ADVISORY_LOCKS.indexer}::int::oid and objid = hashtext('${schema}')::oid`,
  );
}

test("an indexer need not wait for the clock of the former one's host, if that was ahead", async () => {
  await pool.query(`create schema held; create table held._ponder_meta as
    select 'app' as key, '{"is_locked": 1, "heartbeat_at": 9999999999999}'::jsonb as value`);
  const before = Date.now();
  await takeIndexerLock(url, "held", { onWaiting() {}, onLost() {} });
  const { rows } = await pool.query("select value from held._ponder_meta");
  expect(rows[0].value).toMatchObject({ is_locked: 1 });
  expect(rows[0].value.heartbeat_at).toBeGreaterThanOrEqual(before);
  expect(rows[0].value.heartbeat_at).toBeLessThanOrEqual(Date.now());
  await endHolder("held");
});

const SCHEMAS = ["indexer_lock_test_a", "indexer_lock_test_b"] as const;

test("the lock is held by one indexer per index; when its connection ends, another takes over and it is notified", async () => {
  const calls: string[] = [];
  const take = (name: string, schema: string) =>
    takeIndexerLock(url, schema, {
      onWaiting: () => calls.push(`${name} waits`),
      onLost: () => calls.push(`${name} lost it`),
    }).then(() => calls.push(`${name} has it`));
  await take("first", SCHEMAS[0]);
  await take("of another index", SCHEMAS[1]);
  const second = take("second", SCHEMAS[0]);
  await expect.poll(() => calls).toContain("second waits");
  expect(calls).toEqual(["first has it", "of another index has it", "second waits"]);

  await endHolder(SCHEMAS[0]);

  await second;
  await expect.poll(() => calls.slice(3).sort()).toEqual(["first lost it", "second has it"]);
  for (const schema of SCHEMAS) await endHolder(schema);
});

test("a holder whose connection goes silent loses the lock, and its Ponder loses its connections", async () => {
  const [schema] = SCHEMAS;
  const { hostname, port } = new URL(url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  const proxied = Object.assign(new URL(url), { port: String(proxy.port) }).href;
  let losses = 0;
  const take = (databaseUrl: string) =>
    takeIndexerLock(databaseUrl, schema, { onWaiting() {}, onLost: () => (losses += 1), silence: "15s" });
  const ponder = new pg.Client({
    connectionString: url,
    application_name: `${schema}_internal`,
  });
  let hasEnded = false;
  ponder.on("error", () => {});
  ponder.on("end", () => {
    hasEnded = true;
  });
  await take(proxied);
  await ponder.connect();
  const { rows: holders } = await pool.query<{ port: number }>(
    `select client_port as port from pg_stat_activity
     where application_name = 'indexer-lock' and datname = current_database()`,
  );
  expect(holders).toHaveLength(1);
  proxy.swallow(holders[0]?.port as number);

  await take(url);

  // The first notices within 12 seconds, and its Ponder has 15 to end.
  expect(losses).toBe(1);
  expect(Number.parseInt(LOCK_SILENCE, 10)).toBeGreaterThan(12 + 15);
  await expect.poll(() => hasEnded).toBe(true);
  await endHolder(schema);
  await proxy.stop();
}, 90_000);
