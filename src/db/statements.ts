/** Prepared statements: one by one, by shape, or shared by the calls of one turn of the event loop; and their rows. */
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { fillPlaceholders, getTableColumns, type SQL, sql } from "drizzle-orm";
import { type PgColumn, PgDialect, type PgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import type { Executor } from "./client.js";

/** How long a connection to Postgres is used at most. */
export const CONNECTION_SECONDS = 600;

const dialect = new PgDialect({ casing: "snake_case" });

/** Times stay text. */
const TIMES = new Set<number>([pg.types.builtins.TIMESTAMPTZ, pg.types.builtins.TIMESTAMP]);
const asText = (value: string): string => value;
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text") =>
    TIMES.has(id) ? asText : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
};

type Statement<Row> = (db: Executor, values: Record<string, unknown>) => Promise<Row[]>;

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

/** SQL for {@link prepareShared}: the calls that share a statement, as rows of `call`, with these Postgres types and `n`. */
export function sharedCalls(types: Record<string, string>): SQL {
  const columns = Object.entries({ n: "int", ...types }).map(
    ([name, type]) => sql`${sql.identifier(name)} ${sql.raw(type)}`,
  );
  return sql`json_to_recordset(${sql.placeholder("calls")}::json) as call (${sql.join(columns, sql`, `)})`;
}

/**
 * SQL for {@link prepareShared}: for each call the row that `statement` finds, if any. The statement reads a call's values as
 * columns of `call`, under their names and with these Postgres types. `once`: common table expressions that all calls share.
 */
export function forEachCall(types: Record<string, string>, statement: SQL, once?: SQL): SQL {
  // Because of the limit, rows are looked up call by call. Otherwise the planner can prefer to read whole tables.
  const shared = sql`
    select call.n, shared.* from ${sharedCalls(types)} cross join lateral (${statement} limit 1) shared`;
  return once === undefined ? shared : sql`with ${once} ${shared}`;
}

/** Calls that share a statement: the rows of all are in memory at once, and contracts can be long. */
const MAX_SHARED = 30;
/** A statement in sequence that hangs stops the next one no longer than this. */
const MAX_TURN_MS = 1000;

interface SharedCalls<Row> {
  /** Their values, each with its place. */
  calls: Record<string, unknown>[];
  /** By place. */
  rows: Promise<Row[]>;
}

/**
 * A {@link prepare}d statement that the calls of one turn of the event loop share ("Calls share statements"). It reads its
 * {@link sharedCalls}, and returns at most one row for each, with the call's `n`. With `inSequence`, it also waits for the
 * end of the previous one, a second at most. With `apart`, calls that are equal in this value do not share one.
 */
export function prepareShared<Row extends object>(
  name: string,
  statement: SQL,
  { inSequence = false, apart }: { inSequence?: boolean; apart?: string } = {},
): Statement<Row> {
  const run = prepare<Row & { n: number }>(name, statement);
  const current = new WeakMap<Executor, SharedCalls<Row>>();
  const last = new WeakMap<Executor, Promise<unknown>>();

  const begin = (db: Executor): SharedCalls<Row> => {
    const calls: SharedCalls<Row>["calls"] = [];
    const previous = last.get(db);
    const turn = previous && Promise.race([previous, delay(MAX_TURN_MS, undefined, { ref: false })]);
    const rows = Promise.allSettled([setImmediate(), turn]).then(async () => {
      if (current.get(db)?.calls === calls) current.delete(db);
      const found: Row[] = [];
      for (const { n, ...row } of await run(db, { calls: JSON.stringify(calls) })) found[n] = row as Row;
      return found;
    });
    const begun = { calls, rows };
    current.set(db, begun);
    if (inSequence) last.set(db, rows);
    return begun;
  };

  return async (db, values) => {
    let shared = current.get(db);
    const isApart = (call: Record<string, unknown>) => apart !== undefined && call[apart] === values[apart];
    if (shared === undefined || shared.calls.length >= MAX_SHARED || shared.calls.some(isApart))
      shared = begin(db);
    const n = shared.calls.length;
    shared.calls.push({ ...values, n });
    const row = (await shared.rows)[n];
    return row === undefined ? [] : [row];
  };
}

/** Weight of the shapes, which callers choose, that connections keep: each unit is a quarter of a megabyte in each of them. */
const MAX_WEIGHT = 120;
/** After this, others get their turn. Postgres forgets the statements with their connections ({@link CONNECTION_SECONDS}). */
const SHAPES_MS = CONNECTION_SECONDS * 1000;

/** Of a query whose text depends on its shape. `weight`: how many selects the text combines. */
export function prepareShapes<Row extends object>(name: string) {
  const known = new Map<string, Statement<Row>>();
  let weights = 0;
  let generation = 0;
  let endsAt = performance.now() + SHAPES_MS;
  return (
    shape: string,
    build: () => { text: SQL; weight: number },
  ): { run: Statement<Row>; isKept: boolean } => {
    if (performance.now() >= endsAt) {
      known.clear();
      weights = 0;
      generation++;
      endsAt = performance.now() + SHAPES_MS;
    }
    const found = known.get(shape);
    if (found !== undefined) return { run: found, isKept: true };
    const { text, weight } = build();
    if (weights + weight > MAX_WEIGHT) return { run: prepare<Row>(undefined, text), isKept: false };
    const run = prepare<Row>(`${name}_${generation}_${known.size}`, text);
    known.set(shape, run);
    weights += weight;
    return { run, isKept: true };
  };
}

const SIZES = [1, 10, 25, 50, 100, 200];

/** Rows that a statement reads for a page with this limit, so that lists have few shapes: the limit, or a few more. */
export const sizeOf = (limit: number): number => SIZES.find((size) => size >= limit) ?? limit;

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

/** SQL: as drizzle's `inArray`, with one parameter: its text would grow with the list, and is built for every call. */
export const isOneOf = (column: PgColumn, values: readonly (bigint | string)[]): SQL =>
  sql`${column} = any(${sql.param(values.map(String))})`;

/** Inserts rows by one parameter, as {@link isOneOf}. A value that only some rows have is null in the others. */
export async function insertRows<T extends PgTable>(
  db: Executor,
  table: T,
  rows: readonly T["$inferInsert"][],
): Promise<void> {
  if (rows.length === 0) return;
  const columns = Object.entries(getTableColumns(table)).filter(([key]) => rows.some((row) => key in row));
  const named = rows.map((row: Record<string, unknown>) =>
    Object.fromEntries(columns.map(([key, { name }]) => [name, row[key]])),
  );
  const json = JSON.stringify(named, (_, value) => (typeof value === "bigint" ? value.toString() : value));
  const identifiers = columns.map(([, { name }]) => sql.identifier(name));
  const names = sql.join(identifiers, sql`, `);
  await db.execute(sql`
    insert into ${table} (${names}) select ${names} from json_populate_recordset(null::${table}, ${json}::json)`);
}

/** SQL: a table's columns by name: a prepared `*` fails once a newer release has added one. */
export const columnsOf = (table: PgTable): SQL => sql.join(Object.values(getTableColumns(table)), sql`, `);

/** A {@link prepare}d statement for rows of `table`; `condition` follows its name. */
export function prepareRows<T extends PgTable>(
  name: string,
  table: T,
  condition: SQL,
): Statement<T["$inferSelect"]> {
  const read = prepare<Record<string, unknown>>(
    name,
    sql`select ${columnsOf(table)} from ${table} ${condition}`,
  );
  return async (db, values) => (await read(db, values)).map((row) => rowOf(table, row));
}
