import { type IndexerOptions, indexerCommand, unlockIndexer } from "./indexer-process.js";
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
      // The local network's lock file says that no other supervisor runs an indexer on this database.
      await unlockIndexer({ databaseUrl: options.databaseUrl, schema: command.schema });
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
