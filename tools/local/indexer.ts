/** The indexer as a child process, which restarts like the local Postgres and chain. */
import type { Guardian } from "../../src/indexer/supervision/guardian.js";
import { watchIndex } from "../../src/indexer/supervision/index-watch.js";
import {
  dropIndex,
  type IndexerOptions,
  indexerCommand,
  unlock,
} from "../../src/indexer/supervision/indexer.js";
import { ROOT } from "../../src/root.js";
import { type Supervised, supervise, until } from "./processes.js";

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
  let abandoned: string | undefined;
  const supervised = await supervise({
    name: "The indexer",
    guardian: options.guardian,
    logPath: options.logPath,
    report: options.report,
    async plan() {
      if (abandoned !== undefined) await dropIndex(options.databaseUrl, schema, abandoned);
      abandoned = undefined;
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
    onAbandoned(index) {
      options.report("A reorg went deeper than the indexer can follow. Indexing from scratch.");
      abandoned = index;
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
