/** The whole service on one machine, for tests: a new Postgres, anvil, indexer and API, removed afterwards. */
import { join } from "node:path";
import { destination } from "pino";
import { parseConfig } from "../../src/config.js";
import { createLogger } from "../../src/logger.js";
import { createService, type Service } from "../../src/main.js";
import { localSignerKeys, type RemoteChain } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { startTestNetwork } from "./network.js";
import { partition } from "./partition.js";

/** Plain data: it crosses from the process that runs the stack into the test processes. */
export interface StackInfo {
  url: string;
  databaseUrl: string;
  rpcUrl: string;
  indexerUrl: string;
  deploymentPath: string;
  logs: string;
  /** How long a process can lag behind the newest block's time. Absent with a single process: tests need not wait. */
  clockLagMs?: number;
}

export type Stack = Awaited<ReturnType<typeof startStack>>;

const DEFAULT_ENVIRONMENT = {
  MASTER_KEY: "11".repeat(32),
  LOG_LEVEL: "debug",
  WEBHOOKS_TO_PRIVATE_ADDRESSES: "true",
  RATE_LIMIT_READS: "0",
  RATE_LIMIT_WRITES: "0",
  RATE_LIMIT_ANONYMOUS: "0",
  RATE_LIMIT_CHALLENGES: "0",
  RATE_LIMIT_PAGES: "0",
  GAS_ALLOWANCE: "0",
  GAS_BUDGET: "0",
};

/** Settings of a service on that network, by environment variable. */
export function serviceEnvironment(
  network: RemoteChain & { databaseUrl: string },
  port: number,
): Record<string, string | undefined> {
  return {
    ...DEFAULT_ENVIRONMENT,
    RELAYER_PRIVATE_KEYS: localSignerKeys().join(","),
    DATABASE_URL: network.databaseUrl,
    RPC_URL: network.rpcUrl,
    WS_RPC_URL: network.wsRpcUrl,
    DEPLOYMENT: network.deploymentPath,
    WALLET_NODE_URL: network.rpcUrl,
    PORT: String(port),
  };
}

/** Starts another service with the role `api` on a stack's network, in this process. The caller must stop it. */
export async function startApi(
  info: StackInfo,
  options: Omit<NonNullable<Parameters<typeof createService>[1]>, "logger"> = {},
  port?: number,
): Promise<Service> {
  const network = { ...info, wsRpcUrl: info.rpcUrl.replace("http", "ws") };
  const environment = serviceEnvironment(network, port ?? (await freePort()));
  const config = parseConfig({ ...environment, ROLES: "api" });
  return createService(config, { logger: createLogger("fatal"), ...options });
}

/** Starts a separate stack, on a new Postgres unless a database is given. The caller must stop it. */
export async function startStack({
  databaseUrl,
  env = {},
}: {
  databaseUrl?: string;
  env?: Record<string, string>;
} = {}) {
  const { network, logs, stop } = await startTestNetwork({ databaseUrl });
  const logPath = join(logs, "service.log");
  if (process.env.DATABASE_LAYOUT === "partitioned") await partition(network.databaseUrl);
  const port = await freePort();
  const start = async (more: Record<string, string> = {}): Promise<Service> => {
    const config = parseConfig({ ...serviceEnvironment(network, port), ...env, ...more });
    const logger = createLogger(config.logLevel, destination({ dest: logPath, mkdir: true, sync: false }));
    const service = await createService(config, { logger });
    await until("the service is ready", async () => (await fetch(`${service.url}/ready`)).ok, {
      timeoutMs: 180_000,
    });
    return service;
  };

  let service = await start();
  return {
    info: {
      url: service.url,
      databaseUrl: network.databaseUrl,
      rpcUrl: network.rpcUrl,
      indexerUrl: network.parts.indexer.url,
      deploymentPath: network.deploymentPath,
      logs,
    },
    get service() {
      return service;
    },
    network,
    /** Restarts the service on the same network, as after a crash or with other settings. */
    async restartService(more?: Record<string, string>): Promise<void> {
      await service.stop();
      service = await start(more);
    },
    async stop(): Promise<void> {
      await service.stop();
      await stop();
    },
  };
}
