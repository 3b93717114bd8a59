/** A fault that an index is watched for. */
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { watchIndex } from "../../src/indexer/supervision/index-watch.js";
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
  const others: string[] = [];
  const watch = watchIndex({
    databaseUrl: postgres.url,
    schema: "onchain_none",
    rpcUrl: sharedStack().rpcUrl,
    onDatabaseRestarted: () => (restarts += 1),
    onStandstill: () => others.push("standstill"),
    onAbandoned: () => others.push("abandoned"),
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
  expect(others, "there is no index").toEqual([]);
});
