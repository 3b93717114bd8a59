/** The indexer as a child process, which restarts like the local Postgres and chain. */
import { watchIndex } from "../../src/indexer/supervision/index-watch.js";
import {
  dropIndex,
  type IndexerOptions,
  indexerCommand,
  unlock,
} from "../../src/indexer/supervision/indexer.js";
import { ROOT } from "../../src/root.js";
import { type PartOptions, supervise, until } from "./processes.js";

/** Resolves once the chain is indexed. Restarts after a stall or with its database, from scratch after a deep reorg. */
export async function startIndexer(options: IndexerOptions & PartOptions) {
  const url = `http://127.0.0.1:${options.port}`;
  const command = indexerCommand(options);
  const { schema } = command;
  let abandoned: string | undefined;
  const supervised = await supervise({
    ...options,
    name: "The indexer",
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
    async stop(): Promise<void> {
      watch.stop();
      await supervised.stop();
    },
  };
}
