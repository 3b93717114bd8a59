import pg from "pg";
import { ROOT } from "../../root.js";
import { dropIndex, watchIndex } from "./index-watch.js";
import { type IndexerOptions, indexerCommand } from "./indexer-process.js";
import { type Guardian, type Supervised, supervise, until } from "./processes.js";

const TIMEOUT_MS = 10_000;

export interface Indexer extends Supervised {
  url: string;
}

/**
 * Starts the indexer as a child process and resolves once it has indexed the existing chain. It is restarted if its
 * database restarts or the index stalls. If its rows rest on blocks that left the chain for good, it indexes from
 * scratch.
 */
export async function startIndexer(
  options: IndexerOptions & { guardian: Guardian; logPath: string; report(line: string): void },
): Promise<Indexer> {
  const url = `http://127.0.0.1:${options.port}`;
  const command = indexerCommand(options);
  const { schema } = command;
  let isAbandoned = false;
  const supervised = await supervise({
    name: "The indexer",
    guardian: options.guardian,
    logPath: options.logPath,
    report: options.report,
    async plan() {
      if (isAbandoned) await dropIndex(options.databaseUrl, schema);
      isAbandoned = false;
      await unlock(options.databaseUrl, schema);
      return { ...command, cwd: ROOT };
    },
    ready: (signal) =>
      until("the indexer has indexed the chain", async () => (await fetch(`${url}/ready`)).ok, {
        timeoutMs: 300_000,
        signal,
      }),
  });
  const watch = watchIndex({
    ...options,
    schema,
    onDatabaseRestarted() {
      options.report("The indexer's database has restarted. Restarting the indexer.");
      supervised.restart();
    },
    onStandstill() {
      options.report("The index stalled while the chain advanced. Restarting the indexer.");
      supervised.restart();
    },
    onAbandoned() {
      options.report("A reorg went deeper than the indexer can follow. Indexing from scratch.");
      isAbandoned = true;
      supervised.restart();
    },
  });
  return {
    ...supervised,
    url,
    async stop() {
      watch.stop();
      await supervised.stop();
    },
  };
}

/**
 * Removes the lock that Ponder leaves on its schema after a kill or SIGTERM. It would keep the next indexer waiting
 * until the old heartbeat is 25 seconds old. Call it only when no other indexer is running.
 */
export async function unlock(databaseUrl: string, schema: string): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    const table = `${pg.escapeIdentifier(schema)}._ponder_meta`;
    const { rows } = await client.query("select to_regclass($1) as meta", [table]);
    if (rows[0]?.meta == null) return;
    await client.query(`update ${table} set value = jsonb_set(value, '{is_locked}', '0') where key = 'app'`);
  } finally {
    await client.end();
  }
}
