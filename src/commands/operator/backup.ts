/** `backup <file>` and `restore <file>`: all that the service keeps and the chain does not hold, in one file. */
import { createReadStream, createWriteStream, existsSync, renameSync, rmSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { createGunzip, createGzip } from "node:zlib";
import pg from "pg";
import { migrate } from "../../db/client.js";
import { OperatorError, withDatabase } from "./settings.js";

/**
 * Lines of a backup, gzipped: the header, then for each table its name and columns and one JSON object a row, at the
 * end the number of all rows. Values are written and read by Postgres alone, so none changes on the way.
 */
interface Header {
  format: 1;
  createdAt: string;
  /** Hashes of the migrations that had been applied: restored is by the same release. */
  migrations: string[];
}
interface TableLine {
  table: string;
  columns: string[];
}
interface EndLine {
  rows: number;
}

const ROWS_AT_ONCE = 500;

/** Writes a file that did not exist; half a backup never stands under its name. Readers and writers are not held up. */
export async function backup(args: string[]): Promise<void> {
  const file = fileOf(args, "backup");
  if (existsSync(file)) throw new OperatorError(`${file} exists already; name a new file.`);
  const part = `${file}.part`;
  rmSync(part, { force: true });
  const end: EndLine = { rows: 0 };
  try {
    await withDatabase(async ({ $client: pool }) => {
      const client = await pool.connect();
      try {
        const output = createWriteStream(part, { mode: 0o600, flush: true });
        await pipeline(linesOf(client, end), createGzip(), output);
      } finally {
        // Ends the transaction with the connection: nothing was written in it.
        client.release(true);
      }
    });
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
  renameSync(part, file);
  console.log(`${file} holds ${end.rows} rows. It holds no master key: keep that one apart from it.`);
}

/** Counts the rows in `end`, which is also the last line. */
async function* linesOf(client: pg.PoolClient, end: EndLine): AsyncGenerator<string> {
  // One moment for all tables.
  await client.query("begin isolation level repeatable read read only");
  const migrations = await appliedMigrations(client);
  yield lineOf({ format: 1, createdAt: new Date().toISOString(), migrations } satisfies Header);
  for (const { table, columns } of await tablesOf(client)) {
    yield lineOf({ table, columns } satisfies TableLine);
    await client.query(
      `declare rows no scroll cursor for select row_to_json(t)::text as line from app.${pg.escapeIdentifier(table)} t`,
    );
    for (let read = ROWS_AT_ONCE; read === ROWS_AT_ONCE; ) {
      const { rows } = await client.query<{ line: string }>(`fetch ${ROWS_AT_ONCE} from rows`);
      read = rows.length;
      end.rows += read;
      if (read > 0) yield rows.map(({ line }) => `${line}\n`).join("");
    }
    await client.query("close rows");
  }
  yield lineOf(end);
}

/** Fills a database that holds nothing of the service yet; where that fails it holds nothing afterwards. */
export async function restore(args: string[]): Promise<void> {
  const file = fileOf(args, "restore");
  if (!existsSync(file)) throw new OperatorError(`${file} does not exist.`);
  const rowCount = await withDatabase(async ({ $client: pool }) => {
    // Before the migration: a database that is in use, of whichever release, is left as it is.
    const first = await pool.connect();
    await requireNoRows(first).finally(() => first.release());
    await migrate(pool);
    const client = await pool.connect();
    try {
      await client.query("begin");
      const bytes = createGunzip();
      // Its faults come out of the iteration, beside those of what is read.
      pipeline(createReadStream(file), bytes).catch(() => {});
      const count = await readTables(client, file, bytes);
      await client.query("commit");
      return count;
    } catch (error) {
      if ((error as { code?: string }).code?.startsWith("Z_")) throw notABackup(file, error);
      throw error;
    } finally {
      // Takes back what was not committed.
      client.release(true);
    }
  });
  console.log(`${rowCount} rows restored. Start the indexer: it reads everything else from the chain.`);
}

async function readTables(
  client: pg.PoolClient,
  file: string,
  bytes: AsyncIterable<Buffer>,
): Promise<number> {
  let isHeaderRead = false;
  let current: TableLine | undefined;
  let waiting: string[] = [];
  let rowCount = 0;
  const flush = async (): Promise<void> => {
    if (current !== undefined && waiting.length > 0) await insertRows(client, current, waiting);
    waiting = [];
  };
  for await (const line of splitLines(bytes)) {
    const read = parse(line, file);
    if (!isHeaderRead) {
      await requireEmptyTwin(client, file, read as unknown as Header);
      isHeaderRead = true;
    } else if (isTableLine(read)) {
      await flush();
      current = read;
    } else if (isEndLine(read)) {
      await flush();
      if (read.rows !== rowCount) {
        throw new OperatorError(`${file} has ${rowCount} rows instead of ${read.rows}.`);
      }
      await advanceIds(client);
      return rowCount;
    } else {
      waiting.push(line);
      rowCount += 1;
      if (waiting.length === ROWS_AT_ONCE) await flush();
    }
  }
  throw new OperatorError(`${file} ends too early: it is not a whole backup.`);
}

/** The database is of the backup's release, and has no row yet. */
async function requireEmptyTwin(client: pg.PoolClient, file: string, header: Header): Promise<void> {
  if (header.format !== 1 || !Array.isArray(header.migrations)) throw notABackup(file);
  if (header.migrations.join() !== (await appliedMigrations(client)).join()) {
    throw new OperatorError(
      `${file} was made by another release (${header.migrations.length} migrations). Restore it with that release, then upgrade.`,
    );
  }
  await requireNoRows(client);
}

async function requireNoRows(client: pg.PoolClient): Promise<void> {
  for (const { table } of await tablesOf(client)) {
    const found = await client.query(`select 1 from app.${pg.escapeIdentifier(table)} limit 1`);
    if (found.rowCount === 0) continue;
    throw new OperatorError(`app.${table} is not empty: restore into a new database.`);
  }
}

async function insertRows(
  client: pg.PoolClient,
  { table, columns }: TableLine,
  lines: string[],
): Promise<void> {
  const name = `app.${pg.escapeIdentifier(table)}`;
  const names = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
  await client.query(
    `insert into ${name} (${names}) select ${names} from json_populate_recordset(null::${name}, $1::json)`,
    [`[${lines.join(",")}]`],
  );
}

/** New ids go on after those that were restored. */
async function advanceIds(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string; sequence: string }>(
    `select table_name as "table", column_name as "column", sequence
      from information_schema.columns, pg_get_serial_sequence(format('app.%I', table_name), column_name) sequence
      where table_schema = 'app' and sequence is not null`,
  );
  for (const { table, column, sequence } of rows) {
    await client.query(
      `select setval($1, coalesce(max(${pg.escapeIdentifier(column)}), 0) + 1, false) from app.${pg.escapeIdentifier(table)}`,
      [sequence],
    );
  }
}

/** Tables of the service in alphabetical order, with the columns that hold data of their own. */
async function tablesOf(client: pg.PoolClient): Promise<TableLine[]> {
  const { rows } = await client.query<TableLine>(
    `select c.table_name as "table", array_agg(c.column_name::text order by c.ordinal_position) as columns
      from information_schema.columns c
      join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
      where c.table_schema = 'app' and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
      group by c.table_name order by c.table_name`,
  );
  return rows;
}

async function appliedMigrations(client: pg.PoolClient): Promise<string[]> {
  const { rows } = await client.query<{ hash: string }>(
    "select hash from drizzle.__drizzle_migrations order by created_at",
  );
  return rows.map(({ hash }) => hash);
}

/** Only line feeds divide lines: the text of a row may hold every other separator. */
async function* splitLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** No table has exactly these columns. */
function isTableLine(line: Record<string, unknown>): line is Record<string, unknown> & TableLine {
  return Object.keys(line).join() === "table,columns";
}

function isEndLine(line: Record<string, unknown>): line is Record<string, unknown> & EndLine {
  return Object.keys(line).join() === "rows";
}

function lineOf(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}

function parse(line: string, file: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch (cause) {
    throw notABackup(file, cause);
  }
}

function notABackup(file: string, cause?: unknown): OperatorError {
  return new OperatorError(`${file} is not a whole backup of this service.`, { cause });
}

function fileOf(args: string[], command: string): string {
  const { positionals } = parseArgs({ args, allowPositionals: true });
  const [file, ...rest] = positionals;
  if (file === undefined || rest.length > 0) throw new OperatorError(`Usage: ${command} <file>`);
  return file;
}
