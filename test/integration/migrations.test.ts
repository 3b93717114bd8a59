/** Which databases a release accepts at start. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError } from "../../src/config.js";
import { createDatabase, migrate } from "../../src/db/client.js";
import { newDatabase, type TestDatabase } from "../support/database.js";
import { runProgram } from "../support/programs.js";

let own: TestDatabase;
let database: ReturnType<typeof createDatabase>;

beforeEach(async () => {
  own = await newDatabase();
  database = createDatabase(own.url, { maxConnections: 1 });
  await migrate(database.pool);
  await database.pool.query("insert into app.profile (agent) values ('kept')");
});
afterEach(async () => {
  await database.pool.end();
  await own.drop();
});

test.each([
  [
    "whose journal is in the schema drizzle",
    `create schema drizzle;
     alter table app.migration set schema drizzle;
     alter table drizzle.migration rename to __drizzle_migrations`,
  ],
  ["whose journal has other migrations", "update app.migration set hash = 'other', created_at = 1"],
  ["whose journal is empty", "delete from app.migration"],
])("refuses a database of an earlier release, %s, and changes nothing", async (_, change) => {
  await database.pool.query(change);

  await expect(migrate(database.pool)).rejects.toThrow(ConfigError);

  await expect(migrate(database.pool)).rejects.toThrow("created by an earlier release");
  expect((await database.pool.query("select agent from app.profile")).rows).toEqual([{ agent: "kept" }]);
});

test("npm run migrate says what is wrong and fails", async () => {
  await database.pool.query("update app.migration set hash = 'other'");
  const finished = await runProgram("src/commands/migrate.ts", [], { DATABASE_URL: own.url });

  expect(finished).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^DATABASE_URL: .* Use a new, empty database.*\n$/),
  });
});

test("accepts a database that a newer release has migrated", async () => {
  await database.pool.query("insert into app.migration (hash, created_at) values ('newer', 9999999999999)");

  await migrate(database.pool);

  expect((await database.pool.query("select from app.profile")).rowCount).toBe(1);
});

test("accepts a database in which an earlier start ended before the first migration", async () => {
  await database.pool.query("drop schema app cascade; create schema app");
  await database.pool.query(
    "create table app.migration (id serial primary key, hash text, created_at bigint)",
  );

  await migrate(database.pool);

  expect((await database.pool.query("select from app.profile")).rowCount).toBe(0);
});
