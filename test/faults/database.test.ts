/**
 * Rows 6, 7, 8, 33: the database. Guards: no process ends because a connection does; a response follows its commit;
 * while the database is away, calls get 503; the outbox is polled in case notifications do not arrive; writes are
 * atomic.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import { startStory, useScene } from "./support/story.js";

/** Row 8 must get its response within this time. It allows for a busy machine. */
const CALL_WAITS_MS = 8_000;
const OUTAGE_MS = 30_000;
const ASK_EVERY_MS = 2_000;
const FULL_FOR_MS = 4_000;
/** Size in MiB of the disk that the test fills. */
const SMALL_DISK = 16;
const scene = await useScene("database", { env: { SETTLEMENT_WAIT_MS: String(CALL_WAITS_MS) } });
const { cluster, customers, clients } = scene;

it("row 6: all processes survive when every database connection is cut repeatedly", async () => {
  const { done } = await startStory(scene);
  for (let cut = 0; cut < 6; cut++) {
    await cluster.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('working-contracts', 'relayer-lock', 'notifications')",
    );
    await delay(300);
  }
  await done;
  expect(cluster.processes.flatMap((one) => one.lastWords())).toEqual([]);
});

it("row 7: Postgres is killed (-9) twice in the middle, and nothing is lost", async () => {
  const { done } = await startStory(scene);
  for (let times = 0; times < 2; times++) {
    const pid = cluster.postgres.pid() ?? 0;
    process.kill(pid, "SIGKILL");
    await until("Postgres is back", async () => cluster.postgres.pid() !== pid && (await answers()), {
      timeoutMs: 60_000,
    });
    await delay(500);
  }
  await done;
  expect(cluster.processes.flatMap((one) => one.lastWords())).toEqual([]);
});

it("row 7: while Postgres is unreachable for half a minute, calls get 503 and nothing accepted is lost", async () => {
  const client = clients[0];
  const { done } = await startStory(scene);
  const payment = await customers.signedCreation(client);
  for (const one of cluster.processes) await one.database.setMode("refuse");
  for (let asked = 0; asked < OUTAGE_MS / ASK_EVERY_MS; asked++) {
    const refused = await Promise.all([
      customers.send(payment),
      customers.attempt(client, "/v1/contracts?limit=1", "", {}, "GET"),
    ]);
    for (const answer of refused) {
      expect(answer?.status).toBe(503);
      expect(answer?.headers.get("retry-after")).not.toBeNull();
    }
    await delay(ASK_EVERY_MS);
  }
  for (const one of cluster.processes) await one.database.setMode("pass");
  expect((await customers.settle(payment)).status).toBe(200);
  await done;
});

it("row 7: connections that go silent are closed", async () => {
  const [api] = cluster.apis;
  for (const { database } of cluster.processes) await database.setMode("black-hole");
  const client = clients[0];
  const startedAt = performance.now();
  const refused = await fetch(`${api?.url}/v1/contracts?limit=1`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
    signal: AbortSignal.timeout(60_000),
  });
  expect(refused.status).toBe(503);
  expect(performance.now() - startedAt).toBeLessThan(45_000);
  for (const { database } of cluster.processes) await database.setMode("pass");
  expect((await customers.create(client)).status).toBe(200);
});

it("row 8: a LISTEN connection that went deaf delays no response", async () => {
  const listeners = async (): Promise<number[]> => {
    const { rows } = await cluster.pool.query<{ port: number }>(
      "select client_port as port from pg_stat_activity where application_name = 'notifications'",
    );
    return rows.map(({ port }) => port);
  };
  const allListen = async (): Promise<boolean> => (await listeners()).length === cluster.processes.length;
  await until("all processes listen", allListen, { timeoutMs: 30_000 });
  for (const port of await listeners()) cluster.processAt(port).database.swallow(port);

  const payment = await customers.signedCreation(clients[1]);
  await customers.settle(payment);

  // The first call got the response, within its wait.
  expect(payment.statuses).toEqual([200]);
});

it("row 33: when the database rejects every write for a full disk, calls get 503 and nothing is half done", async () => {
  const client = clients[2];
  const payment = await customers.signedCreation(client);
  await cluster.pool.query(`create function fault.disk_full() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`);
  for (const table of ["operation", "batch"]) {
    await cluster.pool.query(
      `create trigger fault_disk before insert or update on app.${table} for each row execute function fault.disk_full()`,
    );
  }
  const refused = await customers.send(payment);
  expect(refused?.status).toBe(503);
  expect(await customers.operationsOf(payment)).toEqual([]);
  for (const table of ["operation", "batch"])
    await cluster.pool.query(`drop trigger fault_disk on app.${table}`);
  expect((await customers.settle(payment)).status).toBe(200);
});

it("row 33: when the disk fills in the middle nothing is half done, and everything continues once there is room", async (test) => {
  const disk = mountSmallDisk(join(cluster.dir, "small-disk"), dirname(cluster.postgres.dataDir));
  if (disk === null) return test.skip("NOT TESTED: only root can mount a small disk");
  const run = (statement: string) => cluster.pool.query(statement);
  const move = async (tablespace: string): Promise<void> => {
    const { rows } = await cluster.pool.query<{ statement: string }>(
      `select format('alter %s app.%I set tablespace ${tablespace}', kind, name) as statement from (
        select 'table' as kind, tablename as name from pg_tables where schemaname = 'app' and tablename in ('operation', 'batch')
        union all
        select 'index', indexname from pg_indexes where schemaname = 'app' and tablename in ('operation', 'batch')) as moved`,
    );
    for (const { statement } of rows) await run(statement);
  };
  try {
    await run(`create tablespace small location '${disk.path}'`);
    await run("vacuum full app.operation, app.batch");
    await move("small");
    await run("create table fault.filler (filled text) tablespace small");
    const fill = async (rows: number): Promise<void> => {
      const full = await run(
        `insert into fault.filler select repeat('x', 4000) from generate_series(1, ${rows})`,
      ).then(
        () => null,
        (error: { code: string }) => error.code,
      );
      expect(full ?? "53100").toBe("53100");
      if (full === null) await fill(rows);
      else if (rows > 1) await fill(Math.floor(rows / 4));
    };
    const { payments } = customers;
    const isRefused = async (): Promise<boolean> =>
      payments.slice(known).some(({ statuses }) => statuses.includes(503));
    let known = 0;
    const { done } = await startStory(scene, async () => {
      known = payments.length;
      await fill(256);
    });
    await until("a payment is rejected", isRefused, { timeoutMs: 30_000 });
    await delay(FULL_FOR_MS);
    await run("drop table fault.filler");
    await done;
  } finally {
    await cluster.heal();
    await run("drop table if exists fault.filler");
    await move("pg_default");
    await run("drop tablespace if exists small");
    disk.unmount();
  }
});

it("row 33: while the database accepts no writes, calls get 503 and no process is ready", async () => {
  const client = clients[2];
  const payment = await customers.signedCreation(client);
  const setReadOnly = (value: "on" | "off") =>
    cluster.pool.query(
      `begin read write; alter database faults set default_transaction_read_only = ${value}; commit`,
    );
  const ready = async () =>
    (await Promise.all(cluster.processes.map(({ url }) => fetch(`${url}/ready`)))).map(
      ({ status }) => status,
    );
  await setReadOnly("on");
  try {
    for (const { database } of cluster.processes) database.cut();
    const refused = await customers.send(payment);
    expect(refused?.status).toBe(503);
    expect(refused?.headers.get("retry-after")).not.toBeNull();
    expect(new Set(await ready())).toEqual(new Set([503]));
  } finally {
    await setReadOnly("off");
  }

  // The connections opened meanwhile stay read-only, and are dropped.
  expect((await customers.settle(payment)).status).toBe(200);
  const areReady = async (): Promise<boolean> => (await ready()).every((status) => status === 200);
  await until("all processes are ready", areReady, { timeoutMs: 30_000 });
});

/** A small disk owned by the database's user; null if it cannot be mounted. */
function mountSmallDisk(path: string, ofDatabase: string): { path: string; unmount(): void } | null {
  mkdirSync(path);
  const { uid, gid } = statSync(ofDatabase);
  const options = `size=${SMALL_DISK}m,mode=0700,uid=${uid},gid=${gid}`;
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
  return status === 0 ? { path, unmount: () => void spawnSync("umount", [path]) } : null;
}

async function answers(): Promise<boolean> {
  return (await cluster.pool.query("select 1")).rowCount === 1;
}
