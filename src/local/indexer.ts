import pg from "pg";
import { type IndexerOptions, indexerCommand } from "./indexer-process.js";
import { type Guardian, type Supervised, supervise, until } from "./processes.js";
import { ROOT } from "./root.js";

export interface Indexer extends Supervised {
  url: string;
}

/** Starts the indexer as a child process and resolves once it has read the chain's past. */
export async function startIndexer(
  options: IndexerOptions & { guardian: Guardian; logPath: string; report(line: string): void },
): Promise<Indexer> {
  const url = `http://127.0.0.1:${options.port}`;
  const supervised = await supervise({
    name: "The indexer",
    guardian: options.guardian,
    logPath: options.logPath,
    report: options.report,
    async plan() {
      const command = indexerCommand(options);
      await unlock(options.databaseUrl, command.schema);
      return { ...command, cwd: ROOT };
    },
    ready: (signal) =>
      until("the indexer has read the chain", async () => (await fetch(`${url}/ready`)).ok, {
        timeoutMs: 300_000,
        signal,
      }),
  });
  return { ...supervised, url };
}

/**
 * Takes away the lock that a killed indexer left on its schema: it would keep the next one waiting until the dead
 * one's heartbeat is 25 seconds old. The local network's lock file says that no other one runs.
 */
async function unlock(databaseUrl: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
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
