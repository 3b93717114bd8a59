/** Statements of hot paths: built once, and parsed and planned once per connection. */
import { fillPlaceholders, getTableColumns, type SQL, sql } from "drizzle-orm";
import { type PgColumn, PgDialect, type PgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import type { Executor } from "./client.js";

const dialect = new PgDialect({ casing: "snake_case" });

/** Times stay text. */
const TIMES = new Set<number>([pg.types.builtins.TIMESTAMPTZ, pg.types.builtins.TIMESTAMP]);
const asText = (value: string): string => value;
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text") =>
    TIMES.has(id) ? asText : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
};

export type Statement<Row> = (db: Executor, values: Record<string, unknown>) => Promise<Row[]>;

/**
 * A named prepared statement, with `sql.placeholder` for its values. Rows are as Postgres sends them: bigints and times
 * are strings. A name belongs to one text. Without a name, each call is parsed and planned. Other values are written as
 * literals: Postgres plans for them, but cannot know placeholders.
 */
export function prepare<Row extends object>(name: string | undefined, statement: SQL): Statement<Row> {
  const { sql: text, params } = dialect.sqlToQuery(statement.inlineParams());
  return async (db, values) => {
    // The session's client is the pool, or the connection of a transaction.
    const { client } = db._.session as unknown as { client: Pick<pg.ClientBase, "query"> };
    const query = { ...(name && { name }), text, types, values: fillPlaceholders(params, values) };
    return (await client.query<Row & pg.QueryResultRow>(query)).rows;
  };
}

/** Beyond this number of shapes, which callers choose, connections would keep ever more statements. */
const MAX_SHAPES = 100;

/** Prepared statements of a query whose text depends on its shape. Shapes beyond {@link MAX_SHAPES} are not prepared. */
export function prepareShapes<Row extends object>(name: string) {
  const known = new Map<string, Statement<Row>>();
  return (shape: string, build: () => SQL): Statement<Row> => {
    const found = known.get(shape);
    if (found !== undefined) return found;
    if (known.size >= MAX_SHAPES) return prepare<Row>(undefined, build());
    const made = prepare<Row>(`${name}_${known.size}`, build());
    known.set(shape, made);
    return made;
  };
}

/** SQL: the list of columns after `select`, under the names of the rows' members. */
export function selected(columns: Record<string, SQL | PgColumn>): SQL {
  const list = Object.entries(columns).map(([name, column]) => sql`${column} as ${sql.identifier(name)}`);
  return sql.join(list, sql`, `);
}

/** A row of `table` from a statement that returned all its columns under their SQL names. */
export function rowOf<T extends PgTable>(table: T, raw: Record<string, unknown>): T["$inferSelect"] {
  const values = Object.entries(getTableColumns(table)).map(([key, column]) => {
    const value = raw[column.name];
    return [key, value === null ? null : column.mapFromDriverValue(value)];
  });
  return Object.fromEntries(values);
}
