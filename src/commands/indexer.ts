/**
 * Runs the indexer alone, against an existing database and chain. Its schema is named for its release. Any number can
 * run: one indexes, the others stand by. It exits with code 1, to be restarted by its supervisor, if it lost its
 * database or the database restarted, if the index stalled while the chain advanced, or if a reorg went deeper than it
 * can follow.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
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

const { DATABASE_URL, RPC_URL, WS_RPC_URL, DEPLOYMENT, INDEXER_PORT = "42069" } = process.env;
if (!DATABASE_URL || !RPC_URL || !DEPLOYMENT) {
  console.error("DATABASE_URL, RPC_URL and DEPLOYMENT are required.");
  process.exit(1);
}
let line: IndexerCommand;
try {
  line = indexerCommand({
    databaseUrl: DATABASE_URL,
    rpcUrl: RPC_URL,
    wsRpcUrl: WS_RPC_URL || undefined,
    deploymentPath: resolve(DEPLOYMENT),
    port: Number(INDEXER_PORT),
  });
} catch (error) {
  refuse(error);
}
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

await takeIndexerLock(DATABASE_URL, schema, {
  onWaiting: () => console.error("Another indexer is writing this index. Standing by to take over."),
  onLost: () => end("database connection lost"),
}).catch(refuse);
// The guardian ends Ponder if this process is killed: the next indexer must not find it still writing.
const guardian = startGuardian();
child = spawn(command, args, { env, stdio: "inherit" });
guardian.watch(child.pid ?? 0);
watchIndex({
  databaseUrl: DATABASE_URL,
  schema,
  rpcUrl: RPC_URL,
  onDatabaseRestarted: () => end("database restarted"),
  onStandstill: () => end("index stalled"),
  onAbandoned: () => end("reorg too deep"),
});
child.on("exit", async (code) => {
  guardian.forget(child?.pid ?? 0);
  if (reason === "reorg too deep") await dropIndex(DATABASE_URL, schema).catch(() => {});
  // Without our own lock, Ponder's lock can already belong to another indexer.
  else if (reason !== "database connection lost") await unlock(DATABASE_URL, schema).catch(() => {});
  process.exit(reason === undefined ? (code ?? 1) : 1);
});
