/** The indexer alone, against a database and a chain that run elsewhere; its schema is named for its release. */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { indexerCommand } from "../src/local/indexer-process.js";

const { DATABASE_URL, RPC_URL, WS_RPC_URL, DEPLOYMENT, INDEXER_PORT = "42069" } = process.env;
if (!DATABASE_URL || !RPC_URL || !DEPLOYMENT) {
  console.error("DATABASE_URL, RPC_URL and DEPLOYMENT are required.");
  process.exit(1);
}
const { command, args, env } = indexerCommand({
  databaseUrl: DATABASE_URL,
  rpcUrl: RPC_URL,
  wsRpcUrl: WS_RPC_URL || undefined,
  deploymentPath: resolve(DEPLOYMENT),
  port: Number(INDEXER_PORT),
});
const child = spawn(command, args, { env, stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
child.on("exit", (code) => process.exit(code ?? 1));
