/** Composition root: builds and connects every part of the service. */
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import type { Hono } from "hono";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { createApp, createProbeApp } from "./app.js";
import { createChainClients, createChainClock } from "./chain/clients.js";
import { readDeployment, signerFaults, verifyDeployment, verifyNode } from "./chain/deployment.js";
import { type Config, ConfigError } from "./config.js";
import { createDatabase, createNotifications, databaseOn, migrate, type Notifications } from "./db/client.js";
import { INDEX_CHANGED, lookWhenIndexed } from "./db/onchain.js";
import { readsFrom } from "./db/replica.js";
import type { Deps } from "./deps.js";
import { createEventFeed } from "./events/log.js";
import { createLogWriter } from "./events/log-writer.js";
import { createCheckpointTrees } from "./features/checkpoints/checkpoint-trees.js";
import { createKeyOwners } from "./http/key-owners.js";
import { createKeeper } from "./keeper/keeper.js";
import { createPurger } from "./keeper/purge.js";
import { createLogger } from "./logger.js";
import { createMetrics, type Metrics } from "./metrics.js";
import { createOutboxWaiter } from "./relayer/outbox.js";
import { createRelayer, createUnownedSignerFollower } from "./relayer/relayer.js";
import type { ConcurrencyLimit, Loop } from "./scheduling.js";
import { createWebhookSender } from "./webhooks/sender.js";

const KEEPER_INTERVAL_MS = 2000;
/** Payment headers can hold contract wallets' long signatures; idle connections must outlive the client's own timeout. */
const SERVER_OPTIONS = { maxHeaderSize: 64 * 1024, keepAliveTimeout: 65_000 };
/** Requests of one connection without a response. Each costs time before any limit, and Node.js reads hundreds at once. */
const MAX_PIPELINED = 16;
/** A connection silent for this long beyond the longest call is closed: its client has probably stopped reading. */
const STALL_MS = 120_000;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
/** How long stop() waits for open requests. */
const DRAIN_MS = 10_000;
/** Before the drain ends, calls that still wait for their operation respond 503 `settlement_pending`. */
const LAST_RESPONSES_MS = 2_000;

/** Called in reverse order when the service stops. */
type Closing = (() => Promise<void> | void)[];

export interface Service {
  url: string;
  /** Finishes open requests, then closes everything. Signed transactions are not lost. */
  stop(): Promise<void>;
}

/**
 * Starts the service, with `routes` added to its own. Throws if the database or the chain is unusable, and then leaves
 * nothing open.
 */
export async function createService(
  config: Config,
  {
    logger = createLogger(config.logLevel),
    routes,
    inQuoteTurn,
  }: { logger?: Logger; routes?: Hono | undefined; inQuoteTurn?: ConcurrencyLimit } = {},
): Promise<Service> {
  const closing: Closing = [];
  const stop = async (): Promise<void> => {
    for (const close of closing.splice(0).reverse()) await close();
  };

  try {
    const { deployment, publicClient, accounts } = await openChain(config, logger);
    const { db, apiDb, readDb, pools } = await openDatabases(config, logger, closing);
    const notifications = createNotifications({ pool: pools.work });
    closing.push(() => notifications.stop());

    const clock = createChainClock({ publicClient });
    closing.push(() => clock.stop());
    await clock.refresh();
    notifications.listen(INDEX_CHANGED, { onNotification: clock.lookSoon });

    const { maxFeePerGas, gasPolicy, roles } = config;
    const signers = accounts.map(({ address }) => address.toLowerCase() as Address);
    const metrics = createMetrics({ db, pools, publicClient, signers, maxFeePerGas, gasPolicy });
    const parts = { config, publicClient, clock, deployment, logger, metrics };
    for (const loop of createLoops({ ...parts, db, pool: pools.work, notifications, accounts })) {
      closing.push(() => loop.stop());
      loop.start();
    }

    const shared = { ...parts, db: apiDb, readDb };
    let app = createProbeApp(shared);
    let endStreams = (): void => {};
    let endWaits = (): void => {};
    if (roles.has("api")) {
      const keys = createKeyOwners(apiDb, notifications);
      const outbox = createOutboxWaiter({ db: apiDb, notifications });
      lookWhenIndexed(apiDb, notifications);
      endWaits = () => outbox.stop();
      closing.push(endWaits);
      const feed = await createEventFeed({ db, notifications, logger });
      endStreams = () => feed.stop();
      closing.push(endStreams);
      app = createApp({
        ...shared,
        keys,
        outbox,
        feed,
        inQuoteTurn,
        checkpointTrees: createCheckpointTrees(),
      });
    }
    if (routes !== undefined) app.route("/", routes);
    const server = await listen(app, config);
    server.setTimeout(config.settlementWaitMs + STALL_MS);
    closing.push(() => drain(server, endWaits));
    // Before the drain, which would otherwise wait for open event streams.
    closing.push(endStreams);
    return { url: config.baseUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Throws ConfigError if the node, the deployment or all signers are unusable. */
async function openChain(
  { deploymentPath, baseUrl, roles, rpcUrl, relayerPrivateKeys }: Config,
  logger: Logger,
) {
  const deployment = readDeployment(deploymentPath);
  const { chainId, domain } = deployment;
  const { host, hostname } = new URL(baseUrl);
  // Clients sign in at no other host. On one machine they expect `localhost`.
  if (roles.has("api") && host !== domain && !LOOPBACK_HOSTS.has(hostname)) {
    logger.warn(
      { host, domain },
      "the host of BASE_URL is not the deployment's domain: clients cannot sign in",
    );
  }
  const { publicClient } = createChainClients({ rpcUrl, chainId });
  const accounts = relayerPrivateKeys.map((key) => privateKeyToAccount(key));
  const signers = accounts.map(({ address }) => address);
  await verifyDeployment({ publicClient, deployment });
  const refused = await signerFaults({ publicClient, deployment, signers });
  // One that the Relay does not allow must not keep the others from their work; its loop raises an alarm.
  if (refused.length > 0 && refused.length === signers.length) throw new ConfigError(refused.join("\n"));
  await verifyNode(publicClient);
  return { deployment, publicClient, accounts };
}

/** Connects for background work, for calls, and for reads, which a replica can serve; migrates the database. */
async function openDatabases(config: Config, logger: Logger, closing: Closing) {
  const { databaseUrl, databaseReadUrl, statementTimeoutMs } = config;
  const { api, read, work } = config.databaseConnections;
  const onError = (error: Error): void => logger.warn({ error }, "a database connection broke");
  const connect = (options: { maxConnections: number; statementTimeoutMs?: number }, url = databaseUrl) => {
    const database = createDatabase(url, { ...options, onError });
    closing.push(() => database.pool.end());
    return database;
  };
  const working = connect({ maxConnections: work });
  await migrate(working.pool);
  const serving = connect({ maxConnections: api, statementTimeoutMs });
  const toRead = { maxConnections: read, statementTimeoutMs };
  const reading = connect(toRead);
  const readDb =
    databaseReadUrl === undefined
      ? reading.db
      : databaseOn(readsFrom(connect(toRead, databaseReadUrl).pool, reading.pool));
  const pools = { work: working.pool, api: serving.pool, read: reading.pool };
  return { db: working.db, apiDb: serving.db, readDb, pools };
}

/** The loops of this process's roles. */
function createLoops({
  config,
  accounts,
  ...parts
}: Pick<Deps, "config" | "db" | "publicClient" | "clock" | "deployment" | "logger"> & {
  pool: Pool;
  metrics: Metrics;
  notifications: Notifications;
  accounts: readonly PrivateKeyAccount[];
}): Loop[] {
  const { confirmations, maxFeePerGas, maxPriorityFeePerGas, maxBatchSize, gasPolicy, roles } = config;
  const loops: Loop[] = [];
  if (roles.has("relayer")) {
    const options = { confirmations, maxFeePerGas, maxPriorityFeePerGas, maxBatchSize, gasPolicy };
    const relaying = { ...parts, options, metrics: parts.metrics.relayer };
    loops.push(createUnownedSignerFollower(relaying));
    for (const account of accounts) loops.push(createRelayer({ ...relaying, account }));
  }
  if (roles.has("worker")) {
    const policy = { allowPrivate: config.webhooksToPrivateAddresses };
    const wakers = { notifications: parts.notifications, channels: [INDEX_CHANGED] };
    loops.push(
      createLogWriter(parts),
      createWebhookSender({ ...parts, keys: config, policy }),
      createKeeper({ ...parts, intervalMs: KEEPER_INTERVAL_MS, wakers }),
      createPurger(parts),
    );
  }
  return loops;
}

/** The response to a request that does not reach the app. */
function refusal(message: string) {
  const headers = { "Content-Type": "application/json", "X-Request-Id": randomUUID() };
  return { body: JSON.stringify({ error: { code: "invalid_request", message } }), status: 400, headers };
}

const LISTEN_FAULTS: Record<string, (host: string, port: number) => string> = {
  EADDRINUSE: (_, port) =>
    `PORT: ${port} is in use; stop the program that listens there, or choose another port`,
  EACCES: (_, port) => `PORT: no permission to listen on ${port}; choose a port above 1023`,
  EADDRNOTAVAIL: (host) => `HOST: ${host} is not an address of this machine`,
  ENOTFOUND: (host) => `HOST: ${host} is not an address of this machine`,
};

function listen(app: ReturnType<typeof createApp>, { host, port }: Config): Promise<Server> {
  return new Promise((resolve, reject) => {
    const listener = getRequestListener(app.fetch, {
      hostname: host,
      errorHandler(error) {
        // The app responds to every error, unless its error handler fails.
        if (!(error instanceof RequestError)) return new Response(null, { status: 500 });
        const refused = refusal("The URL or the Host header is malformed.");
        return new Response(refused.body, refused);
      },
    });
    const pending = new WeakMap<Socket, number>();
    const server = createServer(SERVER_OPTIONS, (incoming, outgoing) => {
      const { socket, url = "", headers } = incoming;
      const count = (pending.get(socket) ?? 0) + 1;
      if (count > MAX_PIPELINED) socket.destroy();
      if (socket.destroyed) return;
      pending.set(socket, count);
      outgoing.once("close", () => pending.set(socket, (pending.get(socket) ?? 1) - 1));
      // Before they are parsed, which takes a tenth of a second if both are as long as a header can be.
      if (`http://${headers.host}${url}`.length <= LIMITS.urlLength) return void listener(incoming, outgoing);
      const refused = refusal(`The URL is longer than ${LIMITS.urlLength} characters.`);
      outgoing.writeHead(refused.status, { ...refused.headers, Connection: "close" }).end(refused.body);
    });
    server.listen(port, host, () => resolve(server));
    server.once("error", (error: NodeJS.ErrnoException) => {
      const advice = LISTEN_FAULTS[error.code ?? ""];
      reject(
        advice === undefined
          ? error
          : Object.assign(new ConfigError(advice(host, port)), { code: error.code }),
      );
    });
  });
}

/** Resolves once all requests have a response, or after {@link DRAIN_MS}; calls `endWaits` shortly before. */
async function drain(server: Server, endWaits: () => void): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Clients keep a connection open after its last response.
  const closing = setInterval(() => server.closeIdleConnections(), 100);
  const timers = [
    setTimeout(endWaits, DRAIN_MS - LAST_RESPONSES_MS),
    setTimeout(() => server.closeAllConnections(), DRAIN_MS),
  ];
  await closed;
  clearInterval(closing);
  for (const timer of timers) clearTimeout(timer);
}
