/** Postgres connections, and the migrations of our own tables. */
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { migrate as applyMigrations } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { ConfigError } from "../config.js";
import { ADVISORY_LOCKS } from "./advisory-locks.js";

export type Database = NodePgDatabase & { $client: pg.Pool };
export type Transaction = Parameters<Parameters<NodePgDatabase["transaction"]>[0]>[0];
/** Accepted by queries that run either alone or inside a transaction. */
export type Executor = Database | Transaction;

/** Conditions of Postgres that the service distinguishes. */
export const SQLSTATE = {
  /** A view on the index is missing: the index is being built for the first time, or rebuilt. */
  undefinedTable: "42P01",
  /** Another transaction changed what this one had read. */
  serializationFailure: "40001",
  insufficientPrivilege: "42501",
  /** On all connections after a Postgres process crashed: the server stays up, unflushed commits are lost. */
  crashShutdown: "57P02",
} as const;

/** Whether Postgres reported this condition, as the error itself or as one of its causes. */
export function hasSqlState(error: unknown, state: string): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ((cause as { code?: unknown }).code === state) return true;
  }
  return false;
}

/** The table of applied migrations is in `app` too, so that a dump of that schema is complete. */
const MIGRATIONS = {
  migrationsFolder: fileURLToPath(new URL("./migrations", import.meta.url)),
  migrationsSchema: "app",
  migrationsTable: "migration",
};
/** A connection silent for this long is closed: the network can drop it without notice. */
const SILENCE_MS = 20_000;
/** A transaction idle for this long is ended: its process might be frozen or gone, and it holds locks. */
const IDLE_TRANSACTION_MS = 30_000;
const CASING = { casing: "snake_case" } as const;

/**
 * Opens a pool and a drizzle handle on it. A connection that breaks, idle or in a transaction, is reported to `onError`
 * and dropped from the pool; only the query that used it rejects.
 */
export function createDatabase(
  url: string,
  {
    maxConnections = 20,
    statementTimeoutMs = 0,
    onError = () => {},
  }: {
    maxConnections?: number;
    /** Postgres cancels queries that take longer; 0 disables the limit. */
    statementTimeoutMs?: number;
    onError?: (error: Error) => void;
  } = {},
): { pool: pg.Pool; db: Database } {
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    ...(statementTimeoutMs > 0 && { statement_timeout: statementTimeoutMs }),
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    connectionTimeoutMillis: 10_000,
    application_name: "working-contracts",
    stream: openSocket,
  });
  // The pool handles errors of idle connections only; one that breaks in use would crash the process.
  pool.on("connect", (connection) => connection.on("error", onError));
  pool.on("error", () => {});
  return { pool, db: databaseOn(pool) };
}

export function databaseOn(pool: pg.Pool): Database {
  return Object.assign(drizzle(pool, CASING), { transaction: transactionsOf(pool) });
}

/** Replaces drizzle's `transaction`, which leaks the pooled connection if `begin` fails, as on a broken connection. */
function transactionsOf(pool: pg.Pool): NodePgDatabase["transaction"] {
  return async (run, config) => {
    const connection = await pool.connect();
    try {
      return await drizzle(connection, CASING).transaction(run, config);
    } finally {
      connection.release();
    }
  };
}

function openSocket(): Socket {
  const socket = new Socket();
  return socket.setTimeout(SILENCE_MS, () => socket.destroy());
}

/**
 * Migrates the schema `app` to the newest version. Several processes can call it at the same time. Throws ConfigError if
 * the database cannot be reached, its user lacks a permission, or its tables were created by a release whose migrations are unknown here.
 */
export async function migrate(pool: pg.Pool): Promise<void> {
  // A separate connection without the silence limit: a migration can take longer than any query.
  const { stream: _, ...options } = pool.options;
  const connection = new pg.Client({ ...options, keepAlive: true });
  connection.on("error", () => {});
  await connection.connect().catch((cause: Error) => {
    throw new ConfigError(`DATABASE_URL: cannot connect to the database (${cause.message})`, { cause });
  });
  try {
    await connection.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.migrations]);
    await assertKnownRelease(connection);
    await applyMigrations(drizzle(connection), MIGRATIONS);
  } catch (cause) {
    if (!hasSqlState(cause, SQLSTATE.insufficientPrivilege)) throw cause;
    throw new ConfigError(
      "DATABASE_URL: the user needs the right to create schemas, and to own the schema app",
      {
        cause,
      },
    );
  } finally {
    await connection.end();
  }
}

/** A newer release's database passes: it contains the initial migration of this one. */
async function assertKnownRelease(connection: pg.Client): Promise<void> {
  const { rows: tables } = await connection.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'app'",
  );
  if (tables.length === 0) return;
  const hasRecord = tables.some(({ name }) => name === MIGRATIONS.migrationsTable);
  const applied = hasRecord ? (await connection.query("select hash from app.migration")).rows : [];
  const [initial] = readMigrationFiles(MIGRATIONS);
  if (applied.some(({ hash }) => hash === initial?.hash)) return;
  // Left by a process that ended before it had applied anything.
  if (applied.length === 0 && hasRecord && tables.length === 1) return;
  throw new ConfigError(
    "DATABASE_URL: this database was created by an earlier release and cannot be upgraded. Use a new, empty database, or continue to run the earlier release. To reset the local network, run `npm start -- --reset`.",
  );
}
