/** Reads on a streaming replica: up to date at any moment, and from the primary while the replica is not. */
import { execFileSync } from "node:child_process";
import { appendFileSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createDatabase } from "../../src/db/client.js";
import { readsFrom } from "../../src/db/replica.js";
import type { Postgres } from "../../tools/local/postgres.js";
import { listen } from "../support/listen.js";
import { newFolder, startOwnPostgres } from "../support/network.js";

let primary: Postgres;
let replica: Postgres;
let writer: pg.Pool;
let replicaPool: pg.Pool;
let reader: pg.Pool;
const pools: pg.Pool[] = [];

beforeAll(async () => {
  primary = await startOwnPostgres({ volatile: false });
  const connect = ({ url }: Postgres): pg.Pool => {
    const { pool } = createDatabase(url);
    pools.push(pool);
    return pool;
  };
  writer = connect(primary);
  await writer.query("create table written (id integer)");
  replica = await startOwnPostgres({ dir: await copyPrimary(), volatile: false });
  replicaPool = connect(replica);
  reader = readsFrom(replicaPool, connect(primary));
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await replica?.stop();
  await primary?.stop();
});

/** The folder of a base backup that follows its primary; the bundled Postgres comes without pg_basebackup. */
async function copyPrimary(): Promise<string> {
  const session = await writer.connect();
  await session.query("select pg_backup_start('replica', fast => true)");
  const dir = newFolder("replica-");
  const data = join(dir, "postgres/data");
  mkdirSync(join(dir, "postgres"));
  execFileSync("cp", ["-a", primary.dataDir, data]);
  rmSync(join(data, "postmaster.pid"), { force: true });
  const { rows } = await session.query("select labelfile from pg_backup_stop(wait_for_archive => false)");
  session.release();
  const { port } = new URL(primary.url);
  const source = `host=127.0.0.1 port=${port} user=postgres password=test`;
  appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
  const { uid, gid } = statSync(data);
  for (const [file, text] of [
    ["backup_label", rows[0].labelfile],
    ["standby.signal", ""],
  ] as const) {
    writeFileSync(join(data, file), text);
    chownSync(join(data, file), uid, gid);
  }
  return dir;
}

async function read(): Promise<{ count: number; isReplica: boolean }> {
  const { rows } = await reader.query(
    'select count(*)::int as count, pg_is_in_recovery() as "isReplica" from written',
  );
  return rows[0];
}
let written = 0;
async function write(): Promise<void> {
  await writer.query("insert into written values (1)");
  written += 1;
}

test("a read shows every write before it, and the replica serves it", async () => {
  let served = 0;
  // A busy computer's replica can be left alone for some seconds.
  while (written < 50 || (served === 0 && written < 2_000)) {
    await write();
    const shown = await read();
    expect(shown.count).toBe(written);
    if (shown.isReplica) served += 1;
    if (written > 50) await delay(50);
  }
  expect(served).toBeGreaterThan(0);
});

test("the primary serves what the replica has not replayed yet", async () => {
  const admin = new pg.Client({ connectionString: replica.url });
  await admin.connect();
  await admin.query("select pg_wal_replay_pause()");
  await write();
  expect(await read()).toEqual({ count: written, isReplica: false });
  await admin.query("select pg_wal_replay_resume()");
  await admin.end();
  await expect.poll(read).toEqual({ count: written, isReplica: true });
});

test("a replica that was promoted is left alone", async () => {
  await replicaPool.query("select pg_promote()");
  await write();
  const asked = vi.spyOn(replicaPool, "query");
  for (let round = 0; round < 5; round++) expect(await read()).toEqual({ count: written, isReplica: false });
  expect(asked.mock.calls.length).toBeLessThan(5);
});

test("the primary serves everything after the replica has stopped", async () => {
  await replica.stop();
  await write();
  expect(await Promise.all([read(), read()])).toEqual(Array(2).fill({ count: written, isReplica: false }));
});

test("the primary serves everything while the replica does not respond", async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  const { port } = await listen(silent);
  const { pool } = createDatabase(`postgres://postgres@127.0.0.1:${port}/test`);
  const answer = readsFrom(pool, writer)
    .query("select 1 as one")
    .then(({ rows }) => rows[0].one);
  const given = await Promise.race([answer, delay(5000, "none within 5 s")]);
  for (const socket of sockets) socket.destroy();
  silent.close();
  await pool.end();
  expect(given).toBe(1);
});
