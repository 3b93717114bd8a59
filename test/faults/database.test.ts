/**
 * Rows 6, 7, 8, 33: the database. Guards: no connection's end ends a process; what was answered was committed;
 * refusals while it is away are 503; the outbox is polled where notifications do not arrive; writes are whole.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { until } from "../../src/local/processes.js";
import type { Agent } from "../support/agent.js";
import { expectTruth, openScene, type Scene, startStory } from "./support/story.js";

let scene: Scene;

beforeAll(async () => {
  scene = await openScene("database");
});
afterEach(() => scene.cluster.heal());
afterAll(() => scene?.cluster.stop());

it("row 6: every connection of every process is cut, again and again", async () => {
  const { cluster } = scene;
  const { done } = await startStory(scene);
  for (let cut = 0; cut < 6; cut++) {
    await cluster.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ('working-contracts', 'relayer-lock', 'outbox-waiter')",
    );
    await delay(300);
  }
  await done;
  expect(cluster.processes.filter((one) => !one.isRunning())).toEqual([]);
  await expectTruth(scene);
});

it("row 7: Postgres is killed (-9) in the middle, and again", async () => {
  const { cluster } = scene;
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
  expect(cluster.processes.filter((one) => !one.isRunning())).toEqual([]);
  await expectTruth(scene);
});

it("row 7: while Postgres is out of reach calls are refused with 503, and nothing accepted is lost", async () => {
  const { cluster, customers, clients } = scene;
  const client = clients[0] as Agent;
  const { done } = await startStory(scene);
  const asked = await customers.quoted(client, "/v1/contracts", await customers.draft());
  if ("refusal" in asked) throw new Error("no quote");
  const { payment } = asked;
  for (const one of cluster.processes) await one.database.setMode("refuse");
  const refused = await customers.attempt(client, payment.path, payment.body, payment.headers);
  expect(refused?.status).toBe(503);
  expect(refused?.headers.get("retry-after")).not.toBeNull();
  await delay(3000);
  for (const one of cluster.processes) await one.database.setMode("pass");
  expect((await customers.settle(payment)).status).toBe(200);
  await done;
  await expectTruth(scene);
});

it("row 7: connections that go silent instead are given up", async () => {
  const { cluster, customers, clients } = scene;
  const [api] = cluster.apis;
  for (const { database } of cluster.processes) await database.setMode("black-hole");
  const client = clients[0] as Agent;
  const startedAt = performance.now();
  const refused = await fetch(`${api?.url}/v1/contracts?limit=1`, {
    headers: { authorization: `Bearer ${client.apiKey}` },
    signal: AbortSignal.timeout(60_000),
  });
  expect(refused.status).toBe(503);
  expect(performance.now() - startedAt).toBeLessThan(45_000);
  for (const { database } of cluster.processes) await database.setMode("pass");
  expect((await customers.create(client)).status).toBe(200);
  await expectTruth(scene);
});

it("row 8: a LISTEN connection that went deaf delays no answer", async () => {
  const { cluster, customers, clients } = scene;
  const { rows } = await cluster.pool.query<{ port: number }>(
    "select client_port as port from pg_stat_activity where application_name = 'outbox-waiter'",
  );
  expect(rows.length).toBe(cluster.apis.length);
  for (const { port } of rows) cluster.processAt(port).database.swallow(port);

  const asked = await customers.quoted(clients[1] as Agent, "/v1/contracts", await customers.draft());
  if ("refusal" in asked) throw new Error("no quote");
  await customers.settle(asked.payment);

  // Answered by the first call, within its wait.
  expect(asked.payment.statuses).toEqual([200]);
  await expectTruth(scene);
});

it("row 33: with its disk full the database refuses writes; nothing is half done", async () => {
  const { cluster, customers, clients } = scene;
  const client = clients[2] as Agent;
  const asked = await customers.quoted(client, "/v1/contracts", await customers.draft());
  if ("refusal" in asked) throw new Error("no quote");
  const { payment } = asked;
  await cluster.pool.query(`create function fault.disk_full() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`);
  for (const table of ["operation", "batch"]) {
    await cluster.pool.query(
      `create trigger fault_disk before insert or update on app.${table} for each row execute function fault.disk_full()`,
    );
  }
  const refused = await customers.attempt(client, payment.path, payment.body, payment.headers);
  expect(refused?.status).toBe(503);
  const { rows } = await cluster.pool.query("select id from app.operation where nonce = $1", [
    payment.authorization.nonce,
  ]);
  expect(rows).toEqual([]);
  for (const table of ["operation", "batch"])
    await cluster.pool.query(`drop trigger fault_disk on app.${table}`);
  expect((await customers.settle(payment)).status).toBe(200);
  await expectTruth(scene);
});

async function answers(): Promise<boolean> {
  return (await scene.cluster.pool.query("select 1")).rowCount === 1;
}
