/** Postgres: connections, advisory locks, notifications, and the migrations of our own tables. */
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { sql } from "drizzle-orm";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { migrate as applyMigrations } from "drizzle-orm/node-postgres/migrator";
import pg from "pg";
import { ConfigError } from "../config.js";
import { CONNECTION_SECONDS, prepare } from "./statements.js";

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
  deadlock: "40P01",
  insufficientPrivilege: "42501",
  /** The server is a standby, or rejects writes. */
  readOnly: "25006",
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
/** A connection silent for this long is closed: the network can drop it without notice. A query can be silent longer. */
const SILENCE_MS = 20_000;
/** Postgres must end a query before its connection is closed: it does not notice that, and would continue to work. */
const SILENCE_AFTER_TIMEOUT_MS = 5_000;
/** A transaction idle for this long is ended: its process might be frozen or gone, and it holds locks. */
const IDLE_TRANSACTION_MS = 30_000;
/**
 * A plan that is kept from when a table was small would read all of it, until Postgres has analyzed the table. Before
 * version 18, a scan that cannot be avoided then counts as so expensive that Postgres would compile the statement each time.
 */
const PLANNING = "-c enable_seqscan=off -c jit=off";
const CASING = { casing: "snake_case" } as const;

/**
 * Opens a pool and a drizzle handle on it. A connection that breaks, idle or in a transaction, is reported to `onError`
 * and dropped from the pool; only the query that used it rejects.
 */
export function createDatabase(
  url: string,
  {
    maxConnections = 20,
    statementTimeoutMs = SILENCE_MS - SILENCE_AFTER_TIMEOUT_MS,
    onError = () => {},
  }: {
    maxConnections?: number;
    /** Postgres cancels queries that take longer; 0 disables the limit, and that of a connection's silence. */
    statementTimeoutMs?: number;
    onError?: (error: Error) => void;
  } = {},
): { pool: pg.Pool; db: Database } {
  const silenceMs =
    statementTimeoutMs > 0 ? Math.max(SILENCE_MS, statementTimeoutMs + SILENCE_AFTER_TIMEOUT_MS) : 0;
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    ...(statementTimeoutMs > 0 && { statement_timeout: statementTimeoutMs }),
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_MS,
    connectionTimeoutMillis: 10_000,
    // As long as its socket stays open: to start a process for each connection costs Postgres more than its queries.
    idleTimeoutMillis: SILENCE_MS - 1_000,
    maxLifetimeSeconds: CONNECTION_SECONDS,
    application_name: "working-contracts",
    options: PLANNING,
    stream: () => openSocket(silenceMs),
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
    // The pool drops a connection whose single query failed; after a failover, a new one can reach another server.
    let isReadOnly = false;
    try {
      return await drizzle(connection, CASING).transaction(run, config);
    } catch (error) {
      isReadOnly = hasSqlState(error, SQLSTATE.readOnly);
      throw error;
    } finally {
      connection.release(isReadOnly);
    }
  };
}

function openSocket(silenceMs: number): Socket {
  const socket = new Socket();
  return socket.setTimeout(silenceMs, () => socket.destroy());
}

/**
 * Migrates the schema `app` to the newest version. Several processes can call it at the same time. Throws ConfigError if
 * the database cannot be reached, its user lacks a permission, or its tables were created by a release whose migrations are unknown here.
 */
export async function migrate(pool: pg.Pool): Promise<void> {
  // A separate connection without these limits: a migration can take longer than any query.
  const { stream: _, statement_timeout: __, ...options } = pool.options;
  const connection = new pg.Client({ ...options, keepAlive: true });
  connection.on("error", () => {});
  await connection.connect().catch((cause: Error) => {
    throw new ConfigError(`DATABASE_URL: cannot connect to the database (${cause.message})`, { cause });
  });
  try {
    await connection.query("select pg_advisory_lock($1)", [ADVISORY_LOCKS.migrations]);
    await requireKnownRelease(connection);
    await applyMigrations(drizzle(connection), MIGRATIONS);
  } catch (cause) {
    if (!hasSqlState(cause, SQLSTATE.insufficientPrivilege)) throw cause;
    const needs = "the user needs the right to create schemas, and to own the schema app";
    throw new ConfigError(`DATABASE_URL: ${needs}`, { cause });
  } finally {
    await connection.end();
  }
}

/** A newer release's database passes: it contains the initial migration of this one. */
async function requireKnownRelease(connection: pg.Client): Promise<void> {
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

/** Our Postgres advisory lock numbers. Each has one use: two uses of the same number would block each other. */
export const ADVISORY_LOCKS = {
  migrations: 7_402_001,
  /** First half of the key; the second is a hash of the signer. */
  signer: 7_402_002,
  webhookMatching: 7_402_004,
  /** First half of the key; the second is a hash of the index's schema. */
  indexer: 7_402_006,
} as const;

const locking = prepare(
  "transaction_lock",
  sql`select pg_advisory_xact_lock(hashtextextended(${sql.placeholder("name")}, 0))`,
);

/** Serializes everything that takes the lock of this name until the transaction ends. */
export async function lock(tx: Transaction, name: string): Promise<void> {
  await locking(tx, { name });
}

const RECONNECT_DELAY_MS = 500;
const PING_INTERVAL_MS = 300;
/** While {@link Notifications.isCurrent} is not asked. */
const UNASKED_PING_MS = 3000;
/** See {@link Notifications.isCurrent}. */
export const NOTIFICATION_LEASE_MS = 1000;

export interface Subscriber {
  onNotification(payload: string): void;
  /** From now on no notification is missed; called on every connection. Read here what was missed before. */
  onListening?(): void;
  /** The connection broke: notifications are missed until the next {@link onListening}. */
  onLost?(): void;
}

export interface Notifications {
  /**
   * Subscribes until the returned function is called. The channel must be a Postgres identifier. Notifications during a
   * reconnect are lost, so callers must also poll, or distrust what they know.
   */
  listen(channel: string, subscriber: Subscriber): () => void;
  /** Whether every notification that was sent more than {@link NOTIFICATION_LEASE_MS} ago has arrived. */
  isCurrent(): boolean;
  stop(): Promise<void>;
}

/** Connects with the settings of `pool`; none of its connections is used. */
export function createNotifications({ pool }: { pool: pg.Pool }): Notifications {
  const subscribers = new Map<string, Set<Subscriber>>();
  let client: pg.Client | undefined;
  let reconnect: NodeJS.Timeout | undefined;
  let isStopped = false;
  let currentUntil = 0;
  let idle: Promise<unknown> = Promise.resolve();

  /** One statement at a time, as the driver wants it. */
  const run = (on: pg.Client, statement: string): Promise<unknown> => {
    const done = idle.then(() => on.query(statement));
    idle = done.catch(() => undefined);
    return done;
  };

  const connect = async (): Promise<void> => {
    const opened = new pg.Client({ ...pool.options, keepAlive: true, application_name: "notifications" });
    let isLost = false;
    const lost = (): void => {
      if (isLost) return;
      isLost = true;
      if (client === opened) {
        client = undefined;
        currentUntil = 0;
        for (const channel of subscribers.values()) for (const subscriber of channel) subscriber.onLost?.();
      }
      opened.end().catch(() => undefined);
      if (!isStopped) reconnect = setTimeout(() => void connect(), RECONNECT_DELAY_MS).unref();
    };
    opened.on("notification", ({ channel, payload }) => {
      for (const subscriber of subscribers.get(channel) ?? []) subscriber.onNotification(payload ?? "");
    });
    opened.on("error", lost);
    opened.on("end", lost);
    try {
      await opened.connect();
      if (isStopped) return void opened.end().catch(() => undefined);
      client = opened;
      for (const [channel, all] of subscribers) void subscribe(opened, channel, all);
    } catch {
      lost();
    }
  };

  /** A connection that cannot listen, as to a standby, is replaced: its pings would say that nothing was missed. */
  const subscribe = async (on: pg.Client, channel: string, added: Iterable<Subscriber>): Promise<void> => {
    const waiting = [...added];
    try {
      await run(on, `listen ${pg.escapeIdentifier(channel)}`);
    } catch {
      return void on.end().catch(() => undefined);
    }
    if (client !== on) return;
    const current = subscribers.get(channel);
    for (const subscriber of waiting) if (current?.has(subscriber)) subscriber.onListening?.();
  };

  void connect();
  let askedAt = 0;
  let isPinging = false;
  let sentAt = 0;
  /** Postgres sends a connection's notifications before the response to its next statement. */
  const ping = setInterval(async () => {
    const pinged = client;
    const now = performance.now();
    const isAsked = now - askedAt < UNASKED_PING_MS;
    if (pinged === undefined || isPinging || (!isAsked && now - sentAt < UNASKED_PING_MS)) return;
    isPinging = true;
    sentAt = now;
    try {
      await run(pinged, "select 1");
      if (client === pinged) currentUntil = now + NOTIFICATION_LEASE_MS;
    } catch {
      // The connection reports its own end.
    }
    isPinging = false;
  }, PING_INTERVAL_MS).unref();

  return {
    listen(channel, subscriber) {
      const all = subscribers.get(channel) ?? new Set();
      subscribers.set(channel, all.add(subscriber));
      if (client !== undefined) void subscribe(client, channel, [subscriber]);
      return () => void all.delete(subscriber);
    },
    isCurrent() {
      askedAt = performance.now();
      return askedAt < currentUntil;
    },
    async stop() {
      isStopped = true;
      clearInterval(ping);
      clearTimeout(reconnect);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
}
