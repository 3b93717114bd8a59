/** Faults that an index is watched for. */
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, expect, it } from "vitest";
import { watchIndex } from "../../src/indexer/supervision/index-watch.js";
import { listen } from "../support/listen.js";
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

it("drops no index because a node that is behind it stands on another block", async () => {
  const checkpoint = (block: number) => `'${"0".repeat(26)}${String(block).padStart(16, "0")}'`;
  await ask("create schema made");
  await ask(`create table made._ponder_meta as select 'app' as key, '{"is_ready": 1}'::jsonb as value`);
  await ask(`create table made._ponder_checkpoint as
    select ${checkpoint(100)} as latest_checkpoint, ${checkpoint(0)} as finalized_checkpoint`);
  await ask("create table made.escrow_event as select 100 as block_number, '0x01' as block_hash");
  let head = 100;
  let looks = 0;
  const node = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const answers = JSON.parse(body).map(({ id, method }: { id: number; method: string }) => {
      if (method === "eth_blockNumber") return { id, result: `0x${head.toString(16)}` };
      looks += 1;
      return { id, result: { number: "0x64", hash: "0x02" } };
    });
    response.end(JSON.stringify(answers));
  });
  const abandoned: string[] = [];
  const watch = watchIndex({
    databaseUrl: postgres.url,
    schema: "made",
    rpcUrl: (await listen(node)).url,
    onDatabaseRestarted() {},
    onStandstill() {},
    onAbandoned: (index) => abandoned.push(index),
  });
  try {
    await expect.poll(() => looks).toBeGreaterThan(1);
    await ask(`update made._ponder_checkpoint set latest_checkpoint = ${checkpoint(130)}`);
    // Longer than an advancing index can keep a row of a block that left the chain.
    await delay(25_000);
    expect(abandoned).toEqual([]);
    head = 131;
    await expect.poll(() => abandoned).toHaveLength(1);
  } finally {
    watch.stop();
    node.close();
  }
}, 60_000);
