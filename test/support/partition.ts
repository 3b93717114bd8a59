/**
 * Divides the tables that belong to single contracts into hash partitions, as an operator with a very large database can.
 * docs/scaling.md says what that is for, and why the other large tables cannot follow.
 */
import pg from "pg";
import { migrate } from "../../src/db/client.js";

const TABLES = [
  ...["checkpoint", "complaint", "delivery", "delivery_share"],
  ...["event_deadline", "key_release", "reference_key", "entrusted_vote"],
];
const PARTITIONS = 4;

interface Index {
  definition: string;
  columns: string[];
  isPrimary: boolean;
}

/** Migrates an empty database, and divides its tables. */
export async function partition(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl });
  await migrate(pool);
  for (const table of TABLES) for (const statement of await divide(pool, table)) await pool.query(statement);
  await pool.end();
}

async function divide(pool: pg.Pool, table: string): Promise<string[]> {
  const { rows: indexes } = await pool.query<Index>(
    `select pg_get_indexdef(indexrelid) as definition, indisprimary as "isPrimary",
       array(select attname::text from pg_attribute where attrelid = indexrelid order by attnum) as columns
     from pg_index where indrelid = $1::regclass`,
    [`app.${table}`],
  );
  const { rows: sequences } = await pool.query<{ name: string | null }>(
    `select pg_get_serial_sequence($1, attname) as name from pg_attribute
     where attrelid = $1::regclass and attname = 'id' and attnum > 0`,
    [`app.${table}`],
  );
  const owned = sequences.flatMap(({ name }) => name ?? []);
  const [primary] = indexes.filter(({ isPrimary }) => isPrimary);
  const key = [...new Set(["contract_id", ...(primary?.columns ?? [])])];
  return [
    `alter table app.${table} rename to undivided`,
    `create table app.${table} (like app.undivided including defaults) partition by hash (contract_id)`,
    ...owned.map((name) => `alter sequence ${name} owned by none`),
    "drop table app.undivided",
    ...Array.from(
      { length: PARTITIONS },
      (_, i) =>
        `create table app.${table}_${i} partition of app.${table} for values with (modulus ${PARTITIONS}, remainder ${i})`,
    ),
    `alter table app.${table} add primary key (${key.join(", ")})`,
    ...indexes.filter(({ isPrimary }) => !isPrimary).map(({ definition }) => definition),
  ];
}
