import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { backup, restore } from "../../src/commands/operator/backup.js";
import { parseConfig } from "../../src/config.js";
import { createDatabase, migrate } from "../../src/db/client.js";
import { startIndexer } from "../../src/indexer/supervision/indexer.js";
import { startGuardian } from "../../src/indexer/supervision/processes.js";
import { createService } from "../../src/main.js";
import { freePort } from "../../tools/local/ports.js";
import { newDatabase as createTestDatabase, type TestDatabase } from "../support/database.js";
import { runOperator } from "../support/programs.js";
import { serviceEnvironment } from "../support/stack.js";
import { openWorld, sharedStack, type World } from "../support/world.js";
import { matchedBetween } from "./contract-actors.js";

const dir = mkdtempSync(join(tmpdir(), "backup-"));
const { databaseUrl } = sharedStack();
let world: World;
const created: TestDatabase[] = [];

beforeAll(async () => {
  world = await openWorld();
});
afterAll(async () => {
  for (const database of created) await database.drop();
  await world.close();
  rmSync(dir, { recursive: true });
});

async function newDatabase(): Promise<string> {
  const database = await createTestDatabase();
  created.push(database);
  return database.url;
}

async function operator(url: string, ...args: string[]): Promise<{ code: number | null; output: string }> {
  const { code, stdout, stderr } = await runOperator(args, { DATABASE_URL: url });
  return { code, output: code === 0 ? stdout : stderr };
}

/** The command without a process of its own. */
async function inProcess(url: string, command: () => Promise<void>): Promise<void> {
  process.env.DATABASE_URL = url;
  await command().finally(() => delete process.env.DATABASE_URL);
}

/** Every row of every table of the service, as Postgres writes it. */
async function contentOf(url: string): Promise<Record<string, string[]>> {
  const { pool } = createDatabase(url, { maxConnections: 1 });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'app' order by 1",
    );
    const content: Record<string, string[]> = {};
    for (const { name } of tables) {
      const { rows } = await pool.query(`select t::text as row from app.${name} t order by 1`);
      content[name] = rows.map(({ row }) => row);
    }
    return content;
  } finally {
    await pool.end();
  }
}

async function filledDatabase(): Promise<string> {
  const url = await newDatabase();
  const { pool } = createDatabase(url, { maxConnections: 1 });
  await migrate(pool);
  await pool.query(
    `insert into app.checkpoint (id, contract_id, position, from_sequence, to_sequence, merkle_root, last_receipt_hash,
        tee_measurement, tee_signature, data, leaf, checkpointed_at)
      select i::text, '0x00', i, 9007199254740991, 9007199254740991, E'line\\nbreak "quoted" \\\\ ünï', '', 'm', 's',
        '{"rows": 1, "big": 123456789012345678901234567890.5, "text": "\\u2028"}', '0x01',
        '2026-01-31T12:00:00.123456Z'::timestamptz
      from generate_series(0, 1234) i`,
  );
  await pool.query(
    `insert into app.profile (agent, display_name, bio) select 'agent ' || i, null, 'rows' from generate_series(1, 7) i`,
  );
  await pool.query(
    `insert into app.operation (id, kind, target, data, gas_limit, state, response)
      values (9007199254740993, 'create', '0x', '0x', 1, 'final', '{"status": 200, "body": "{}", "headers": {}}')`,
  );
  await pool.end();
  return url;
}

test("a backup restores every row of every table, and ids go on after them", async () => {
  const from = await filledDatabase();
  const file = join(dir, "whole.gz");
  const made = await operator(from, "backup", file);
  expect(made).toMatchObject({ code: 0, output: expect.stringContaining("1243 rows") });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(existsSync(`${file}.part`)).toBe(false);

  const to = await newDatabase();
  expect(await operator(to, "restore", file)).toMatchObject({
    code: 0,
    output: expect.stringContaining("1243 rows"),
  });
  expect(await contentOf(to)).toEqual(await contentOf(from));
  const { pool } = createDatabase(to, { maxConnections: 1 });
  const { rows } = await pool.query("insert into app.profile (agent) values ('next') returning id");
  expect(rows[0].id).toBe("8");
  await pool.end();

  expect(await operator(to, "restore", file)).toMatchObject({
    code: 1,
    output: expect.stringContaining("not empty"),
  });
  expect(await operator(from, "backup", file)).toMatchObject({
    code: 1,
    output: expect.stringContaining("exists"),
  });
});

test("after the loss of the database the service answers as before: from the backup and the chain", async () => {
  const client = await world.newAgent({ usd: "100" });
  const worker = await world.newAgent({ usd: "100" });
  const { id } = await matchedBetween(world, client, worker, { supplementaryMaterials: "ipfs://materials" });
  const paths = ["", `/${id}`, `/${id}/terms`, `/${id}/keys`].map((path) => `/v1/contracts${path}`);
  const before = await Promise.all(paths.map((path) => client.get(path)));

  const file = join(dir, "running.gz");
  await inProcess(databaseUrl, () => backup([file]));
  const restored = await newDatabase();
  await inProcess(restored, () => restore([file]));

  const { rpcUrl, deploymentPath } = world.info;
  const network = { databaseUrl: restored, rpcUrl, deploymentPath };
  const guardian = startGuardian();
  const logPath = join(dir, "indexer.log");
  const indexer = await startIndexer({
    ...network,
    guardian,
    logPath,
    port: await freePort(),
    report: () => {},
  });
  const config = parseConfig({ ...serviceEnvironment(network, await freePort()), ROLES: "api" });
  const service = await createService(config, { logger: pino({ level: "silent" }) });
  try {
    const headers = { authorization: `Bearer ${client.apiKey}` };
    const answered = async (path: string) => {
      const answer = await fetch(`${service.url}${path}`, { headers });
      return { status: answer.status, body: await answer.json() };
    };
    for (const [index, path] of paths.entries()) {
      const { status, body } = before[index] as (typeof before)[number];
      // The newest blocks, which are not final yet, come after the indexer is ready.
      await expect.poll(() => answered(path), { timeout: 60_000 }).toEqual({ status, body });
    }
  } finally {
    await service.stop();
    await indexer.stop();
    await guardian.stop();
  }
});

test.each([
  ["cut off", (lines: string[]) => lines.slice(0, -1)],
  ["with a row missing", (lines: string[]) => lines.filter((line) => !line.includes('"agent 3"'))],
  [
    "of another release",
    (lines: string[]) => lines.map((line) => line.replace(/"migrations":\["[^"]+",/, '"migrations":[')),
  ],
  ["that is none", () => ["hello"]],
  ["that is empty", () => []],
])("a backup %s is refused, and leaves the database empty", async (name, change) => {
  const whole = gunzipSync(readFileSync(join(dir, "whole.gz"))).toString("utf8");
  const file = join(dir, `${name}.gz`);
  writeFileSync(file, gzipSync(change(whole.trimEnd().split("\n")).join("\n")));
  const to = await newDatabase();
  await expect(inProcess(to, () => restore([file]))).rejects.toMatchObject({
    name: "OperatorError",
    message: expect.stringContaining(file),
  });
  expect(Object.values(await contentOf(to)).flat()).toEqual([]);
});
