/** How Ponder is started: the same way by the local network, the tests and production. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readDeployment } from "../../chain/deployment.js";
import { ROOT } from "../../root.js";

export interface IndexerOptions {
  databaseUrl: string;
  rpcUrl: string;
  /** If set, new heads arrive by subscription, otherwise by polling. */
  wsRpcUrl?: string | undefined;
  deploymentPath: string;
  /** For Ponder's own /health, /ready, /status and /metrics. */
  port: number;
}

export interface IndexerCommand {
  command: string;
  args: string[];
  /** Complete: the current environment plus the indexer's settings. */
  env: Record<string, string | undefined>;
  /** Postgres schema of this release; the views in `onchain` point at it once it has caught up. */
  schema: string;
}

/**
 * The indexer's command line. SIGTERM ends it cleanly, and a restart resumes. If its files or the deployment have
 * changed, it builds a new index beside that of the previous release.
 */
export function indexerCommand(options: IndexerOptions): IndexerCommand {
  const schema = releaseSchema(options.deploymentPath);
  const ponder = join(ROOT, "node_modules/ponder/dist/esm/bin/ponder.js");
  const root = join(ROOT, "src/indexer");
  return {
    command: process.execPath,
    args: [
      // Ponder uses a deprecated feature of pg, which we cannot change.
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

/** Ponder refuses a schema filled by other code, so the name depends on everything that determines the rows. */
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
