/** Faults that an index is watched for, and which of several indexers can fill it. */
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { ADVISORY_LOCKS } from "../../src/db/client.js";
import { watchIndex } from "../../src/indexer/supervision/index-watch.js";
import { takeIndexerLock } from "../../src/indexer/supervision/indexer.js";
import { startTcpProxy } from "../faults/support/tcp-proxy.js";
import { startOwnPostgres } from "../support/network.js";
import { sharedStack } from "../support/world.js";

const postgres = await startOwnPostgres();
afterAll(() => postgres.stop());

/** Runs one query on a new connection. Fails if the server is still starting. */
async function ask<Row extends pg.QueryResultRow>(query: string): Promise<Row> {
  const client = new pg.Client({ connectionString: postgres.url, application_name: "index-watch-test" });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query<Row>(query)).rows[0] as Row;
  } finally {
    await client.end().catch(() => {});
  }
}

const startedAt = async () => (await ask<{ at: string }>("select pg_postmaster_start_time()::text as at")).at;
const connections = async () =>
  (
    await ask<{ count: number }>(
      "select count(*)::int as count from pg_stat_activity where application_name = 'index-watch'",
    )
  ).count;

it("reports the crash of one of Postgres's processes even if the server was not restarted", async () => {
  let restarts = 0;
  const watch = watchIndex({
    databaseUrl: postgres.url,
    schema: "onchain_none",
    rpcUrl: sharedStack().rpcUrl,
    onDatabaseRestarted: () => (restarts += 1),
    onStandstill: () => expect.unreachable("there is no index"),
    onAbandoned: () => expect.unreachable("there is no index"),
  });
  try {
    await expect.poll(connections).toBe(1);
    const before = await startedAt();
    const victim = new pg.Client({ connectionString: postgres.url });
    victim.on("error", () => {});
    await victim.connect();
    const { rows } = await victim.query<{ pid: number }>("select pg_backend_pid() as pid");
    expect(restarts).toBe(0);

    process.kill(rows[0]?.pid ?? 0, "SIGKILL");

    await expect.poll(() => restarts).toBe(1);
    await expect.poll(() => connections().catch(() => 0)).toBe(1);
    expect(await startedAt()).toBe(before);
    expect(restarts).toBe(1);
  } finally {
    watch.stop();
  }
  await expect.poll(connections).toBe(0);
});

const SCHEMAS = ["indexer_lock_test_a", "indexer_lock_test_b"] as const;

/** Ends the connection of the indexer that holds the lock of `schema`. */
async function endHolder(schema: string): Promise<void> {
  await ask(
    `select pg_terminate_backend(pid, 5000) from pg_locks
     where locktype = 'advisory' and granted
       and classid = ${ADVISORY_LOCKS.indexer}::int::oid and objid = hashtext('${schema}')::oid`,
  );
}

it("the lock is held by one indexer per index; when its connection ends, another takes over and it is notified", async () => {
  const calls: string[] = [];
  const take = (name: string, schema: string) =>
    takeIndexerLock(postgres.url, schema, {
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

it("a holder whose connection goes silent loses the lock, and its Ponder loses its connections", async () => {
  const [schema] = SCHEMAS;
  const { hostname, port } = new URL(postgres.url);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  const url = Object.assign(new URL(postgres.url), { port: String(proxy.port) }).href;
  let losses = 0;
  const take = (databaseUrl: string) =>
    takeIndexerLock(databaseUrl, schema, { onWaiting() {}, onLost: () => (losses += 1) });
  const ponder = new pg.Client({
    connectionString: postgres.url,
    application_name: `${schema}_internal`,
  });
  let hasEnded = false;
  ponder.on("error", () => {});
  ponder.on("end", () => {
    hasEnded = true;
  });
  await take(url);
  await ponder.connect();
  const holder = "select client_port as port from pg_stat_activity where application_name = 'indexer-lock'";
  proxy.swallow((await ask<{ port: number }>(holder)).port);

  await take(postgres.url);

  // So the first has had the time to end its Ponder.
  expect(losses).toBe(1);
  await expect.poll(() => hasEnded).toBe(true);
  await endHolder(schema);
  await proxy.stop();
}, 90_000);
