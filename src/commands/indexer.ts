/**
 * Runs the indexer alone, against an existing database and chain. Its schema is named for its release. Any number can
 * run: one indexes, the others stand by. It exits with code 1, to be restarted by its supervisor, if it lost its
 * database or the database restarted, if the index stalled while the chain advanced, or if a reorg went deeper than it
 * can follow.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { parseIndexerConfig } from "../config.js";
import { watchIndex } from "../indexer/supervision/index-watch.js";
import {
  dropIndex,
  type IndexerCommand,
  indexerCommand,
  takeIndexerLock,
  unlock,
} from "../indexer/supervision/indexer.js";
import { startGuardian } from "../indexer/supervision/processes.js";
import { refuse } from "./refuse.js";

/** Grace period before SIGKILL, for a Ponder that hangs. */
const KILL_AFTER_MS = 15_000;

let config: ReturnType<typeof parseIndexerConfig>;
let line: IndexerCommand;
try {
  config = parseIndexerConfig(process.env);
  line = indexerCommand({ ...config, deploymentPath: resolve(config.deploymentPath) });
} catch (error) {
  refuse(error);
}
const { databaseUrl, rpcUrl } = config;
const { command, args, env, schema } = line;
let child: ChildProcess | undefined;
let reason:
  | "database connection lost"
  | "database restarted"
  | "index stalled"
  | "reorg too deep"
  | undefined;
const end = (why: NonNullable<typeof reason>): void => {
  reason ??= why;
  console.error(`The indexer is stopping: ${why}.`);
  if (child === undefined) process.exit(1);
  child.kill("SIGTERM");
  setTimeout(() => child?.kill("SIGKILL"), KILL_AFTER_MS).unref();
};
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => (child === undefined ? process.exit(0) : child.kill(signal)));
}

await takeIndexerLock(databaseUrl, schema, {
  onWaiting: () => console.error("Another indexer is writing this index. Standing by to take over."),
  onLost: () => end("database connection lost"),
}).catch(refuse);
// The guardian ends Ponder if this process is killed: the next indexer must not find it still writing.
const guardian = startGuardian();
child = spawn(command, args, { env, stdio: "inherit" });
guardian.watch(child.pid ?? 0);
watchIndex({
  databaseUrl,
  schema,
  rpcUrl,
  onDatabaseRestarted: () => end("database restarted"),
  onStandstill: () => end("index stalled"),
  onAbandoned: () => end("reorg too deep"),
});
child.on("exit", async (code) => {
  guardian.forget(child?.pid ?? 0);
  if (reason === "reorg too deep") await dropIndex(databaseUrl, schema).catch(() => {});
  // Without our own lock, Ponder's lock can already belong to another indexer.
  else if (reason !== "database connection lost") await unlock(databaseUrl, schema).catch(() => {});
  process.exit(reason === undefined ? (code ?? 1) : 1);
});
