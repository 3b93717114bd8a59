/** A separate database with the tables and indexes of service and indexer, for tests that need many rows. */
import pg from "pg";
import { migrate } from "../../src/db/client.js";
import { useDatabase } from "../support/database.js";
import { sharedStack } from "../support/world.js";

const SLICE = 10_000;
/** Tables in which Ponder records its progress. They are copied with their rows. */
const PROGRESS = ["_ponder_meta", "_ponder_checkpoint"];

/**
 * Creates the database beside the stack's own, for the tests of one file. It has the service's tables and copies of the
 * indexer's `tables`, all empty.
 */
export async function useLargeDatabase(tables: readonly string[]) {
  const admin = new pg.Client({ connectionString: sharedStack().databaseUrl });
  await admin.connect();
  // One connection: the counters of other sessions arrive late.
  const database = await useDatabase({ maxConnections: 1 });
  await migrate(database.pool);
  await copyIndexTables(admin, database.pool, tables);
  await admin.end();
  return {
    ...database,
    /** Inserts `rows` rows. The columns are SQL expressions of `i`, which runs from 1 to `rows`. */
    async insert(table: string, rows: number, columns: Record<string, string>): Promise<void> {
      const names = Object.keys(columns).join(", ");
      const values = Object.values(columns).join(", ");
      // In slices: a connection without traffic for long is closed.
      for (let from = 1; from <= rows; from += SLICE) {
        const to = Math.min(rows, from + SLICE - 1);
        await database.pool.query(
          `insert into ${table} (${names}) select ${values} from generate_series(${from}, ${to}) i`,
        );
      }
    },
  };
}

async function copyIndexTables(admin: pg.Client, pool: pg.Pool, tables: readonly string[]): Promise<void> {
  const { rows: schemas } = await admin.query<{ schema: string }>(
    "select table_schema as schema from information_schema.tables where table_name = 'working_contract' and table_type = 'BASE TABLE'",
  );
  const schema = schemas[0]?.schema ?? "";
  await pool.query("create schema onchain");
  for (const table of [...tables, ...PROGRESS]) {
    const { rows: columns } = await admin.query<{ column: string }>(
      `select format('%I %s', attname, format_type(atttypid, atttypmod)) as column from pg_attribute
       where attrelid = format('%I.%I', $1::text, $2::text)::regclass and attnum > 0 and not attisdropped order by attnum`,
      [schema, table],
    );
    await pool.query(`create table onchain.${table} (${columns.map(({ column }) => column).join(", ")})`);
    const { rows: indexes } = await admin.query<{ definition: string }>(
      "select indexdef as definition from pg_indexes where schemaname = $1 and tablename = $2",
      [schema, table],
    );
    for (const { definition } of indexes)
      await pool.query(definition.replace(`ON ${schema}.`, "ON onchain."));
  }
  for (const table of PROGRESS) {
    const { rows } = await admin.query<{ row: unknown }>(
      `select to_jsonb(t) as row from ${schema}.${table} t`,
    );
    for (const { row } of rows) {
      await pool.query(
        `insert into onchain.${table} select * from jsonb_populate_record(null::onchain.${table}, $1)`,
        [row],
      );
    }
  }
}
