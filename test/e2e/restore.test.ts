/**
 * The runbook's backup: a dump of the schema `app` and the chain hold everything. Runs on a Postgres of the machine's own
 * packages, as only those contain pg_dump.
 */
import { readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseConfig } from "../../src/config.js";
import { createDatabase } from "../../src/db/client.js";
import { startGuardian } from "../../src/indexer/supervision/guardian.js";
import { createService } from "../../src/main.js";
import { ROOT } from "../../src/root.js";
import { startIndexer } from "../../tools/local/indexer.js";
import { freePort } from "../../tools/local/ports.js";
import { matched, newPair } from "../support/contracts.js";
import { type DebianPostgres, postgresTools, startDebianPostgres } from "../support/debian-postgres.js";
import { runOperator } from "../support/programs.js";
import { type Stack, serviceEnvironment, startStack } from "../support/stack.js";
import { codeBlocks } from "../support/text-blocks.js";
import { openWorld, type World } from "../support/world.js";

const bin = postgresTools();
let postgres: DebianPostgres;
let file: string;
let stack: Stack;
let world: World;

const runbook = readFileSync(join(ROOT, "docs/runbook.md"), "utf8").replaceAll("\\\n", "");

/** The arguments of that command in the runbook, for this test's file and one of its databases. */
function fromRunbook(command: "pg_dump" | "pg_restore", database: string): string[] {
  const line = runbook.match(new RegExp(`^ *${command} (.*)$`, "m"))?.[1];
  if (line === undefined) throw new Error(`docs/runbook.md has no line with the command ${command}`);
  return line
    .replace('"$DATABASE_URL"', postgres.urlOf(database))
    .replace("working-contracts.dump", file)
    .split(/ +/);
}

/** Every row of every table of the service, as Postgres writes it. */
async function contentOf(database: string): Promise<Record<string, string[]>> {
  const { pool } = createDatabase(postgres.urlOf(database), { maxConnections: 1 });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'app' order by 1",
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

describe.skipIf(bin === undefined)("a dump of the schema app", () => {
  beforeAll(async () => {
    postgres = await startDebianPostgres(bin as string, ["original", "restored", "other"]);
    file = join(postgres.dir, "app.dump");
    stack = await startStack({ databaseUrl: postgres.urlOf("original") });
    world = await openWorld(stack.info);
  });
  afterAll(async () => {
    await world?.close();
    await stack?.stop();
    postgres?.stop();
  });

  test("restores a service that responds as before, from the dump and the chain", async () => {
    const pair = await newPair(world);
    const { client } = pair;
    const { id } = await matched(world, pair, { supplementaryMaterials: "ipfs://materials" });
    const paths = ["", `/${id}`, `/${id}/terms`, `/${id}/keys`].map((path) => `/v1/contracts${path}`);
    const before = await Promise.all(paths.map((path) => client.get(path)));
    await stack.service.stop();

    postgres.run("pg_dump", fromRunbook("pg_dump", "original"));
    postgres.run("pg_restore", fromRunbook("pg_restore", "restored"));

    expect(await contentOf("restored")).toEqual(await contentOf("original"));
    const restored = createDatabase(postgres.urlOf("restored"), { maxConnections: 1 }).pool;
    await restored.query(/--command "(update app\.event_log .*)"$/m.exec(runbook)?.[1] ?? "");
    const { rpcUrl, deploymentPath } = stack.info;
    const network = { databaseUrl: postgres.urlOf("restored"), rpcUrl, deploymentPath };
    const guardian = startGuardian();
    const logPath = join(postgres.dir, "indexer.log");
    const indexer = await startIndexer({
      ...network,
      guardian,
      logPath,
      port: await freePort(),
      report: () => {},
    });
    // The master key was replaced since the backup.
    const environment = serviceEnvironment(network, await freePort());
    const keys = { MASTER_KEY: `0x${"22".repeat(32)}`, MASTER_KEYS_OLD: environment.MASTER_KEY };
    const config = parseConfig({ ...environment, ...keys, ROLES: "api,worker" });
    const service = await createService(config, { logger: pino({ level: "silent" }) });
    try {
      const headers = { authorization: `Bearer ${client.apiKey}` };
      const get = async (path: string) => {
        const response = await fetch(`${service.url}${path}`, { headers });
        return { status: response.status, body: await response.json() };
      };
      for (const [index, path] of paths.entries()) {
        const { status, body } = before[index] as (typeof before)[number];
        // The newest blocks, which are not final yet, come after the indexer is ready.
        await expect.poll(() => get(path)).toEqual({ status, body });
      }
      const settings = { DATABASE_URL: network.databaseUrl, ...keys };
      const rotated = await runOperator(["master-key", "rotate"], settings);
      expect(rotated.stdout).toContain("Done: rewrapped 1, nothing left under another master key");
      const { rows } = await restored.query(
        "select nextval('app.operation_id_seq') > max(id) as is_new from app.operation",
      );
      expect(rows).toEqual([{ is_new: true }]);
      const complaint = await fetch(`${service.url}/v1/contracts/${id}/complaints`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ evidence: { what: "late" } }),
      });
      expect(complaint.status).toBe(201);
      const newest = async () => (await get("/v1/events?after=1000000")).body as { data: { type: string }[] };
      await expect
        .poll(async () => (await newest()).data.map(({ type }) => type))
        .toContain("complaint.filed");
    } finally {
      await restored.end();
      await service.stop();
      await indexer.stop();
      await guardian.stop();
    }
  });

  test("has the columns that the runbook's queries name", async () => {
    const blocks = codeBlocks(runbook, "sql").join("").split(";");
    const inline = [...runbook.matchAll(/`(select [^`]+)`/g)].map(([, query = ""]) => query);
    const queries = [...blocks, ...inline].filter((query) => query.trim() !== "");
    expect(queries.length).toBeGreaterThanOrEqual(5);
    const { pool } = createDatabase(postgres.urlOf("restored"), { maxConnections: 1 });
    for (const query of queries) await pool.query(query.replaceAll("= …", "= 0"));
    await pool.end();
  });

  test("is refused by a database that has the service's tables, and changes nothing", async () => {
    const before = await contentOf("restored");

    expect(() => postgres.run("pg_restore", fromRunbook("pg_restore", "restored"))).toThrow(
      'schema "app" already exists',
    );

    expect(await contentOf("restored")).toEqual(before);
  });

  test("leaves the database empty if it is truncated", async () => {
    truncateSync(file, Math.floor(statSync(file).size * 0.9));

    expect(() => postgres.run("pg_restore", fromRunbook("pg_restore", "other"))).toThrow("end of file");

    expect(await contentOf("other")).toEqual({});
  });
});
