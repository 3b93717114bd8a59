/** How Ponder is started and kept alone on its index: the same way by the local network, the tests and production. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { readDeployment } from "../../chain/deployment.js";
import { ConfigError, parsePonderSettings } from "../../config.js";
import { ADVISORY_LOCKS } from "../../db/client.js";
import { ROOT } from "../../root.js";

const LOCK_INTERVAL_MS = 2000;
/**
 * Postgres ends a lock's connection after this time without a sign of life: its host could be gone. Longer than an
 * indexer that notices its lost connection needs to end Ponder.
 */
export const LOCK_SILENCE = "40s";
const TIMEOUTS = { connectionTimeoutMillis: 10_000, query_timeout: 10_000 };

export interface IndexerOptions {
  databaseUrl: string;
  rpcUrl: string;
  /** If set, new heads arrive by subscription, otherwise by polling. */
  wsRpcUrl?: string | undefined;
  deploymentPath: string;
  /** For Ponder's own /health, /ready, /status and /metrics. */
  port: number;
}

/**
 * The indexer's command line, the address on which Ponder listens, and the Postgres schema of this release; the views in
 * `onchain` point at it once it has caught up. SIGTERM ends it cleanly, and a restart resumes. If its files or the
 * deployment have changed, it builds a new index beside that of the previous release. Throws ConfigError if a setting is
 * wrong.
 */
export function indexerCommand(options: IndexerOptions) {
  const schema = releaseSchema(options.deploymentPath);
  const settings = parsePonderSettings(process.env);
  const host = settings.host;
  return {
    command: process.execPath,
    args: [
      // Ponder uses a deprecated feature of pg, which we cannot change.
      "--no-deprecation",
      ...["--import", pathToFileURL(join(ROOT, "src/indexer/supervision/lag-resolution.mjs")).href],
      join(ROOT, "node_modules/ponder/dist/esm/bin/ponder.js"),
      ...["--root", join(ROOT, "src/indexer")],
      ...["--log-format", "json", "--log-level", settings.ponderLogLevel],
      ...["start", "--schema", schema, "--views-schema", "onchain"],
      ...["--hostname", host],
    ],
    /** Complete: the current environment without its keys, plus the indexer's settings. */
    env: {
      // With npm start this process also has the service's keys, and Ponder needs none of them.
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_KEYS?(_|$)/.test(name))),
      DATABASE_URL: options.databaseUrl,
      RPC_URL: options.rpcUrl,
      WS_RPC_URL: options.wsRpcUrl ?? "",
      DEPLOYMENT: options.deploymentPath,
      PONDER_REQUESTS_PER_SECOND: String(settings.requestsPerSecond),
      PONDER_POLLING_INTERVAL_MS: String(settings.pollingIntervalMs),
      // Ponder prefers this variable to its own --port.
      PORT: String(options.port),
      PONDER_TELEMETRY_DISABLED: "true",
    },
    host,
    schema,
  };
}

/** Ponder refuses a schema filled by other code, so the name depends on everything that determines the rows. */
function releaseSchema(deploymentPath: string): string {
  const { chainId, startBlock, factory, registry } = readDeployment(deploymentPath);
  const handlers = readdirSync(join(ROOT, "src/indexer/src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .sort()
    .map((file) => `src/indexer/src/${file}`);
  const files = [
    "node_modules/ponder/package.json",
    "ponder.config.ts",
    ...["abi", "amounts", "hex", "terms"].map((name) => `packages/protocol/src/${name}.ts`),
    "src/indexer/columns.ts",
    "src/indexer/ponder.schema.ts",
    ...handlers,
  ];
  const hash = createHash("sha256").update(JSON.stringify([chainId, startBlock, factory, registry]));
  for (const file of files) hash.update(file).update(readFileSync(join(ROOT, file)));
  return `onchain_${hash.digest("hex").slice(0, 16)}`;
}

/**
 * Resolves once this process alone may index into `schema`; calls `onWaiting` if it has to wait. Calls `onLost` if the
 * connection fails, because the lock is lost with it. Rejects if the database is unreachable. Ponder's own lock is not
 * enough: an instance that found it taken releases it when it exits, although the holder still runs.
 */
export async function takeIndexerLock(
  databaseUrl: string,
  schema: string,
  { onWaiting, onLost, silence = LOCK_SILENCE }: { onWaiting(): void; onLost(): void; silence?: string },
): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    keepAlive: true,
    ...TIMEOUTS,
    application_name: "indexer-lock",
  });
  let isLost = false;
  const lose = (): void => {
    if (!isLost) onLost();
    isLost = true;
  };
  client.on("error", lose);
  client.on("end", lose);
  await client.connect().catch((cause: Error) => {
    throw new ConfigError(`DATABASE_URL: cannot connect to the database (${cause.message})`, { cause });
  });
  const isTaken = async (): Promise<boolean> => {
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock($1, hashtext($2)) as taken, set_config('idle_session_timeout', $3, false)`,
      [ADVISORY_LOCKS.indexer, schema, silence],
    );
    return rows[0]?.taken === true;
  };
  let waiting = false;
  while (!(await isTaken())) {
    if (!waiting) onWaiting();
    waiting = true;
    await delay(LOCK_INTERVAL_MS);
  }
  // The former holder's Ponder, if it hangs or its host is gone: it could hold locks, or continue to write.
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and usename = current_user and application_name in ($1, $2)`,
    [`${schema}_internal`, `${schema}_user`],
  );
  // Ponder waits until the last heartbeat is 25 seconds old. The former host's clock can have been far ahead of this one.
  const soonest =
    "jsonb_set(value, '{heartbeat_at}', to_jsonb(least((value ->> 'heartbeat_at')::numeric, $1)))";
  await updateMeta(client, schema, soonest, [Date.now()]);
  setInterval(() => client.query("select 1").catch(lose), LOCK_INTERVAL_MS).unref();
}

/** Throws ConfigError if another program has the port: Ponder would take the next one, where no probe looks. */
export async function requireFreePort(
  { host, port }: { host: string; port: number },
  patienceMs: number,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const fault = await new Promise<string | undefined>((resolve) => {
      const server = createServer();
      server.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? ""));
      server.listen(port, host, () => server.close(() => resolve(undefined)));
    });
    if (fault === undefined) return;
    if (fault !== "EADDRINUSE")
      throw new ConfigError(`INDEXER_PORT: cannot listen on ${host}:${port} (${fault})`);
    if (performance.now() > deadline)
      throw new ConfigError(
        `INDEXER_PORT: ${port} is in use; stop the program that listens there, or choose another port`,
      );
    await delay(500);
  }
}

/**
 * Removes the lock that Ponder leaves on its schema after a kill or SIGTERM. It would keep the next indexer waiting
 * until the old heartbeat is 25 seconds old. Call it only when no other indexer is running.
 */
export function unlock(databaseUrl: string, schema: string): Promise<void> {
  return withConnection(databaseUrl, (client) =>
    updateMeta(client, schema, "jsonb_set(value, '{is_locked}', '0')"),
  );
}

/**
 * Sets the value of Ponder's row about the index, if there is one, to this SQL expression. From then on the transaction in
 * which a restarted Ponder reverts rows also lowers the checkpoint that the API reads: Ponder itself leaves that to the
 * next block that it reads, and is ready before.
 */
async function updateMeta(
  client: pg.Client,
  schema: string,
  value: string,
  params: unknown[] = [],
): Promise<void> {
  const name = pg.escapeIdentifier(schema);
  const table = `${name}._ponder_meta`;
  const { rows } = await client.query("select to_regclass($1) as meta", [table]);
  if (rows[0]?.meta == null) return;
  await client.query(`update ${table} set value = ${value} where key = 'app'`, params);
  await client.query(`
    create or replace function ${name}.lower_checkpoint() returns trigger language plpgsql as $$ begin
      update ${name}._ponder_checkpoint set latest_checkpoint = safe_checkpoint;
      return new;
    end $$;
    create or replace trigger lower_checkpoint before update on ${table}
      for each row when (new.value ->> 'is_ready' = '0') execute function ${name}.lower_checkpoint()`);
}

/**
 * Drops the index and Ponder's copy of the chain's data: both rest on blocks that are gone. Does nothing if another index
 * has taken the place of this one.
 */
export function dropIndex(databaseUrl: string, schema: string, index: string): Promise<void> {
  return withConnection(databaseUrl, async (client) => {
    const meta = `${pg.escapeIdentifier(schema)}._ponder_meta`;
    const { rows } = await client.query("select to_regclass($1)::oid::text as index", [meta]);
    if (rows[0]?.index !== index) return;
    await client.query(`drop schema if exists ${pg.escapeIdentifier(schema)}, ponder_sync cascade`);
  });
}

/** Without a limit on queries: dropping a large index takes long. */
async function withConnection(databaseUrl: string, run: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: TIMEOUTS.connectionTimeoutMillis,
    application_name: "indexer",
  });
  client.on("error", () => {});
  await client.connect();
  try {
    await run(client);
  } finally {
    await client.end().catch(() => {});
  }
}
