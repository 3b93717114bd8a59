/** Databases of a test's own, on the Postgres server of its project. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, inject } from "vitest";
import { createDatabase } from "../../src/db/client.js";

export type TestDatabase = Awaited<ReturnType<typeof newDatabase>>;

/** Creates an empty one. */
export async function newDatabase() {
  const databaseUrl = inject("databaseUrl");
  const name = `test_${randomBytes(6).toString("hex")}`;
  const asAdmin = async (command: string): Promise<void> => {
    const admin = new pg.Client({ connectionString: databaseUrl });
    await admin.connect();
    await admin.query(command).finally(() => admin.end());
  };
  await asAdmin(`create database ${name}`);
  return {
    url: Object.assign(new URL(databaseUrl), { pathname: `/${name}` }).href,
    /** Also ends whoever is still connected. */
    drop: () => asAdmin(`drop database if exists ${name} with (force)`),
  };
}

/** An empty one for the tests of one file, which goes with it. */
export async function useDatabase(options: Parameters<typeof createDatabase>[1] = {}) {
  const own = await newDatabase();
  const database = createDatabase(own.url, options);
  afterAll(async () => {
    await database.pool.end();
    await own.drop();
  });
  return { ...database, url: own.url };
}

/** How many connections to the database wait for a lock. */
export async function waitingForLock(pool: pg.Pool): Promise<number | null> {
  const waiting = "datname = current_database() and wait_event_type = 'Lock'";
  return (await pool.query(`select 1 from pg_stat_activity where ${waiting}`)).rowCount;
}
