/** How Ponder is started, the same for the local network, the tests and production. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readDeployment } from "../../chain/deployment.js";
import { ROOT } from "../../root.js";

export interface IndexerOptions {
  databaseUrl: string;
  rpcUrl: string;
  /** Heads by subscription where given, else by polling. */
  wsRpcUrl?: string | undefined;
  deploymentPath: string;
  /** Of Ponder's own /health, /ready, /status and /metrics. */
  port: number;
}

export interface IndexerCommand {
  command: string;
  args: string[];
  /** Complete: the current environment and what the indexer needs. */
  env: Record<string, string | undefined>;
  /** Postgres schema of this release; the views in `onchain` point at it once it has caught up. */
  schema: string;
}

/**
 * The command line of the indexer. SIGTERM ends it cleanly; started again it goes on where it was, or beside the
 * former release where its files or the deployment have changed.
 */
export function indexerCommand(options: IndexerOptions): IndexerCommand {
  const schema = releaseSchema(options.deploymentPath);
  const ponder = join(ROOT, "node_modules/ponder/dist/esm/bin/ponder.js");
  const root = join(ROOT, "src/indexer");
  return {
    command: process.execPath,
    args: [
      // Ponder's use of pg is deprecated there, which nobody here can change.
      "--no-deprecation",
      ponder,
      ...["--root", root, "--log-format", "json", "--log-level", process.env.PONDER_LOG_LEVEL ?? "warn"],
      ...["start", "--schema", schema, "--views-schema", "onchain"],
      ...["--hostname", process.env.INDEXER_HOST || "127.0.0.1"],
    ],
    env: {
      ...process.env,
      DATABASE_URL: options.databaseUrl,
      RPC_URL: options.rpcUrl,
      WS_RPC_URL: options.wsRpcUrl ?? "",
      DEPLOYMENT: options.deploymentPath,
      // Ponder prefers this variable to its own --port.
      PORT: String(options.port),
      PONDER_TELEMETRY_DISABLED: "true",
    },
    schema,
  };
}

/** Ponder refuses a schema that other code filled: its name changes with everything that decides what rows look like. */
function releaseSchema(deploymentPath: string): string {
  const { chainId, startBlock, factory, delegation, registry } = readDeployment(deploymentPath);
  const handlers = readdirSync(join(ROOT, "src/indexer/src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .sort()
    .map((file) => `src/indexer/src/${file}`);
  const files = [
    "node_modules/ponder/package.json",
    "ponder.config.ts",
    "packages/protocol/src/abi.ts",
    "packages/protocol/src/terms.ts",
    "src/indexer/ponder.schema.ts",
    ...handlers,
  ];
  const hash = createHash("sha256").update(
    JSON.stringify([chainId, startBlock, factory, delegation, registry]),
  );
  for (const file of files) hash.update(file).update(readFileSync(join(ROOT, file)));
  return `onchain_${hash.digest("hex").slice(0, 16)}`;
}
