import type { Socket } from "node:net";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createDatabase, createNotifications } from "../../src/db/client.js";
import { startTcpProxy } from "../faults/support/tcp-proxy.js";

describe("a connection to Postgres that breaks", () => {
  const errors: Error[] = [];
  let opened: ReturnType<typeof createDatabase>;
  let killer: ReturnType<typeof createDatabase>;

  beforeAll(() => {
    const databaseUrl = inject("databaseUrl");
    opened = createDatabase(databaseUrl, { maxConnections: 2, onError: (error) => errors.push(error) });
    killer = createDatabase(databaseUrl, { maxConnections: 1 });
  });
  afterAll(async () => {
    await opened.pool.end();
    await killer.pool.end();
  });

  const pidOf = async (executor: Pick<typeof opened.db, "execute">) =>
    (await executor.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`)).rows[0]?.pid;
  const terminate = (pid: number | undefined) =>
    killer.db.execute(sql`select pg_terminate_backend(${pid}, 5000)`);

  it("fails the transaction that used it, and the process continues", async () => {
    const broken = opened.db.transaction(async (tx) => {
      await terminate(await pidOf(tx));
      // The error arrives while no query is running on the connection.
      await expect.poll(() => errors.length).toBeGreaterThan(0);
      await tx.execute(sql`select 1`);
    });

    await expect(broken).rejects.toThrow();
    expect(errors).not.toEqual([]);
    expect(await pidOf(opened.db)).toEqual(expect.any(Number));
  });

  it("is replaced if it was idle", async () => {
    const pid = await pidOf(opened.db);
    await terminate(pid);
    await expect.poll(() => pidOf(opened.db).catch(() => pid)).not.toBe(pid);
  });

  it("frees its place in the pool if it breaks as a transaction begins", async () => {
    const url = new URL(inject("databaseUrl"));
    const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    const { pool, db } = createDatabase(url.href, { maxConnections: 1 });
    try {
      expect(await pidOf(db)).toEqual(expect.any(Number));
      pool.once("acquire", () => proxy.cut());
      await expect(db.transaction((tx) => pidOf(tx))).rejects.toThrow();

      expect(await db.transaction((tx) => pidOf(tx))).toEqual(expect.any(Number));
      await pool.end();
    } finally {
      await proxy.stop();
    }
  });

  it("is replaced if it accepts no writes", async () => {
    const { pool, db } = createDatabase(inject("databaseUrl"), { maxConnections: 1 });
    try {
      await pool.query("set default_transaction_read_only = on");
      const write = () => db.transaction((tx) => tx.execute(sql`create table pg_temp.written ()`));
      await expect(write()).rejects.toThrow();
      await write();
    } finally {
      await pool.end();
    }
  });

  it("reports lost notifications, and listens to every channel again", async () => {
    const seen: string[] = [];
    const notifications = createNotifications({ pool: opened.pool });
    try {
      for (const channel of ["first", "second"]) {
        notifications.listen(channel, {
          onNotification: (payload) => seen.push(`${channel} ${payload}`),
          onListening: () => seen.push(`${channel} listening`),
          onLost: () => seen.push(`${channel} lost`),
        });
      }
      const gone = notifications.listen("first", { onNotification: () => seen.push("unsubscribed") });
      gone();
      await expect.poll(() => seen).toEqual(["first listening", "second listening"]);
      await killer.pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'notifications' and query like 'listen%second%'",
      );
      const again = ["first lost", "second lost", "first listening", "second listening"];
      await expect.poll(() => seen.slice(2)).toEqual(again);
      await killer.pool.query("select pg_notify('second', '2'), pg_notify('first', '1')");
      await expect.poll(() => seen.slice(6)).toEqual(["second 2", "first 1"]);
    } finally {
      await notifications.stop();
    }
  });

  it.each([
    ["by default", undefined, "15s", 20_000],
    ["at 1 s", 1_000, "1s", 20_000],
    ["at 30 s", 30_000, "30s", 35_000],
    ["without a limit", 0, "0", 0],
  ])("is not taken for broken during a query that its time-out allows: %s", async (_, ms, limit, silence) => {
    const { pool } = createDatabase(inject("databaseUrl"), {
      ...(ms !== undefined && { statementTimeoutMs: ms }),
    });
    const client = await pool.connect();
    const { rows } = await client.query("show statement_timeout");
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    expect([rows[0].statement_timeout, stream.timeout]).toEqual([limit, silence]);
    client.release();
    await pool.end();
  });

  it("is closed by Postgres if its process stalls in a transaction", async () => {
    const { rows } = await opened.pool.query("show idle_in_transaction_session_timeout");
    expect(rows).toEqual([{ idle_in_transaction_session_timeout: "30s" }]);
  });
});

it("compiles no statement, and reads no table whole that has an index, however small it is", async () => {
  const { pool } = createDatabase(inject("databaseUrl"), { maxConnections: 1 });
  await pool.query("create temporary table small as select id from generate_series(1, 3) id");
  await pool.query("create index on small (id)");
  const { rows } = await pool.query("explain select from small where id = 2");
  expect(rows[0]["QUERY PLAN"]).toMatch(/Index|Bitmap/);
  expect((await pool.query("show jit")).rows).toEqual([{ jit: "off" }]);
  await pool.end();
});
