/**
 * The indexer alone, against a database and a chain that run elsewhere; its schema is named for its release. Any number
 * may be started: one indexes, the others wait to take its place. Ends with code 1, to be started again, where it lost
 * its database or that was started again, where the index stands still though the chain goes on, or where the chain went
 * back beyond what it can follow.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { dropIndex, watchIndex } from "../indexer/supervision/index-watch.js";
import { unlock } from "../indexer/supervision/indexer.js";
import { takeIndexerLock } from "../indexer/supervision/indexer-lock.js";
import { indexerCommand } from "../indexer/supervision/indexer-process.js";
import { startGuardian } from "../indexer/supervision/processes.js";

/** One that hangs does not end by itself. */
const KILL_AFTER_MS = 15_000;

const { DATABASE_URL, RPC_URL, WS_RPC_URL, DEPLOYMENT, INDEXER_PORT = "42069" } = process.env;
if (!DATABASE_URL || !RPC_URL || !DEPLOYMENT) {
  console.error("DATABASE_URL, RPC_URL and DEPLOYMENT are required.");
  process.exit(1);
}
const { command, args, env, schema } = indexerCommand({
  databaseUrl: DATABASE_URL,
  rpcUrl: RPC_URL,
  wsRpcUrl: WS_RPC_URL || undefined,
  deploymentPath: resolve(DEPLOYMENT),
  port: Number(INDEXER_PORT),
});
let child: ChildProcess | undefined;
let reason: "database lost" | "database restarted" | "index stood still" | "rows abandoned" | undefined;
const end = (why: NonNullable<typeof reason>): void => {
  reason ??= why;
  console.error(`The indexer ends: ${why}.`);
  if (child === undefined) process.exit(1);
  child.kill("SIGTERM");
  setTimeout(() => child?.kill("SIGKILL"), KILL_AFTER_MS).unref();
};
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => (child === undefined ? process.exit(0) : child.kill(signal)));
}

await takeIndexerLock(DATABASE_URL, schema, {
  onWaiting: () => console.error("Another indexer fills this index: waiting to take its place."),
  onLost: () => end("database lost"),
});
// The guardian ends Ponder where this process is killed: the next one must not find it at work.
const guardian = startGuardian();
child = spawn(command, args, { env, stdio: "inherit" });
guardian.watch(child.pid ?? 0);
watchIndex({
  databaseUrl: DATABASE_URL,
  schema,
  rpcUrl: RPC_URL,
  onDatabaseRestarted: () => end("database restarted"),
  onStandstill: () => end("index stood still"),
  onAbandoned: () => end("rows abandoned"),
});
child.on("exit", async (code) => {
  guardian.forget(child?.pid ?? 0);
  if (reason === "rows abandoned") await dropIndex(DATABASE_URL, schema).catch(() => {});
  // Without our own lock it may be another one's by now.
  else if (reason !== "database lost") await unlock(DATABASE_URL, schema).catch(() => {});
  process.exit(reason === undefined ? (code ?? 1) : 1);
});
