/** Statements of hot paths: built once, and parsed and planned once per connection. */
import { getTableColumns, type SQL } from "drizzle-orm";
import { PgDialect, type PgTable } from "drizzle-orm/pg-core";
import type { Executor } from "./client.js";

const dialect = new PgDialect({ casing: "snake_case" });

/**
 * A named prepared statement, with `sql.placeholder` for its values. Rows are as Postgres sends them: bigints and times
 * are strings. A name belongs to one text.
 */
export function prepare<Row extends Record<string, unknown>>(name: string, statement: SQL) {
  const query = dialect.sqlToQuery(statement);
  return async (db: Executor, values: Record<string, unknown>): Promise<Row[]> => {
    const prepared = db._.session.prepareQuery<{ execute: { rows: Row[] }; all: never; values: never }>(
      query,
      undefined,
      name,
      false,
    );
    return (await prepared.execute(values)).rows;
  };
}

/** A row of `table` from a statement that returned all its columns under their SQL names. */
export function rowOf<T extends PgTable>(table: T, raw: Record<string, unknown>): T["$inferSelect"] {
  const values = Object.entries(getTableColumns(table)).map(([key, column]) => {
    const value = raw[column.name];
    return [key, value === null ? null : column.mapFromDriverValue(value)];
  });
  return Object.fromEntries(values);
}
