/** Runs the indexer; of several, one indexes. Exits with code 1, to be restarted, on a stall, a lost database or too deep a reorg. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer as createHttpServer } from "node:http";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { createChainClients } from "../chain/clients.js";
import { readDeployment, verifyChain } from "../chain/deployment.js";
import { parseIndexerConfig } from "../config.js";
import { startGuardian } from "../indexer/supervision/guardian.js";
import { watchIndex } from "../indexer/supervision/index-watch.js";
import {
  dropIndex,
  indexerCommand,
  requireFreePort,
  takeIndexerLock,
  unlock,
} from "../indexer/supervision/indexer.js";
import { refuse, withoutUrls } from "../logger.js";

/** Grace period before SIGKILL, for a Ponder that hangs. */
const KILL_AFTER_MS = 15_000;
/** A former indexer that was killed can hold the port a little longer than the lock. */
const PORT_PATIENCE_MS = KILL_AFTER_MS + 5_000;
/** Pause before the next attempt to drop an index that is on an abandoned branch. */
const DROP_AGAIN_MS = 1_000;

let config: ReturnType<typeof parseIndexerConfig>;
let line: ReturnType<typeof indexerCommand>;
try {
  config = parseIndexerConfig(process.env);
  line = indexerCommand({ ...config, deploymentPath: resolve(config.deploymentPath) });
  const deployment = readDeployment(config.deploymentPath);
  const { publicClient } = createChainClients({ rpcUrl: config.rpcUrl, chainId: deployment.chainId });
  await verifyChain({ publicClient, deployment });
} catch (error) {
  refuse(error);
}
const { databaseUrl, rpcUrl, port } = config;
const { command, args, env, host, schema } = line;
console.error(`The index is in the schema ${schema}.`);
let child: ChildProcess | undefined;
/** The index that rests on an abandoned branch. */
let abandoned = "";
type Reason = "database connection lost" | "database restarted" | "index stalled" | "reorg too deep";
let reason: Reason | undefined;
const end = (why: Reason): void => {
  reason ??= why;
  console.error(`The indexer is stopping: ${why}.`);
  if (child === undefined) process.exit(1);
  child.kill("SIGTERM");
  setTimeout(() => child?.kill("SIGKILL"), KILL_AFTER_MS).unref();
};
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    const isRunning = child !== undefined && child.exitCode === null && child.signalCode === null;
    if (!isRunning && abandoned !== "")
      console.error(`Before the next start, drop the schemas ${schema} and ponder_sync: ${reason}.`);
    if (!isRunning) process.exit(0);
    child?.kill(signal);
  });
}

/** Responds to probes until Ponder does: the process is alive, but not ready. */
const standby = createHttpServer(({ url }, response) => {
  response.writeHead(url === "/health" ? 200 : 503).end();
});
// Another indexer of this machine can have the port.
standby.on("error", () => {});
await takeIndexerLock(databaseUrl, schema, {
  onWaiting() {
    console.error("Another indexer is writing this index. Standing by to take over.");
    standby.listen(port, host);
  },
  onLost: () => end("database connection lost"),
}).catch(refuse);
standby.close();
standby.closeAllConnections();
await requireFreePort({ host, port }, PORT_PATIENCE_MS).catch(refuse);
// The guardian ends Ponder if this process is killed: the next indexer must not find it still writing.
const guardian = startGuardian();
child = spawn(command, args, { env, stdio: ["inherit", "pipe", "pipe"] });
// Ponder logs the node's URL with every failed call. The console also survives a pipe whose reader has ended.
for (const [from, print] of [
  [child.stdout, console.log],
  [child.stderr, console.error],
] as const)
  createInterface({ input: from as Readable }).on("line", (text) => print(withoutUrls(text)));
guardian.watch(child.pid ?? 0);
watchIndex({
  databaseUrl,
  schema,
  rpcUrl,
  onDatabaseRestarted: () => end("database restarted"),
  onStandstill: () => end("index stalled"),
  onAbandoned(index) {
    abandoned = index;
    end("reorg too deep");
  },
});
child.on("close", async (code) => {
  guardian.forget(child?.pid ?? 0);
  // Only this process knows that the index is on an abandoned branch: its successor would keep it.
  if (reason === "reorg too deep") {
    let isDropped = false;
    const failed = () => delay(DROP_AGAIN_MS, false);
    while (!isDropped) isDropped = await dropIndex(databaseUrl, schema, abandoned).then(() => true, failed);
  }
  // Without our own lock, Ponder's lock can already belong to another indexer.
  else if (reason !== "database connection lost") await unlock(databaseUrl, schema).catch(() => {});
  process.exit(reason === undefined ? (code ?? 1) : 1);
});
