/** `npm start`: the whole service on this machine, supervised. Ctrl-C ends all of it. */
import { renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { join, relative } from "node:path";
import { destination } from "pino";
import { ConfigError } from "../../src/config.js";
import { startGuardian } from "../../src/indexer/supervision/guardian.js";
import { createLogger, describeError, withoutUrls } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { localOwnerKey, type Network, resetNetwork, startNetwork, takeLock } from "./network.js";
import { freePort, listenOnFreePort } from "./ports.js";
import { until } from "./processes.js";
import { createSandbox, type Sandbox } from "./sandbox/sandbox.js";
import { type Environment, type LocalSettings, readSettings, wantedPort } from "./settings.js";

const LOOPBACK = "127.0.0.1";
const BLOCK_TIME_SECONDS = 1;
const READY_TIMEOUT_MS = 120_000;
const LAUNCHER_CHECK_MS = 500;
const MAX_LOG_BYTES = 10_000_000;

/** Runs until a signal arrives or the start fails. Returns the exit code. */
export async function run(env: Environment, args: readonly string[], launcher: Launcher): Promise<number> {
  const startedAt = Date.now();
  const closing: (() => Promise<void> | void)[] = [];
  const signal = Promise.race([nextSignal(), ...(isRunByNpm(env) ? [npmEnds(launcher)] : [])]);
  let isStopping = false;
  const report = (line: string): void => {
    if (!isStopping) console.log(line);
  };

  const start = async (): Promise<void> => {
    let settings = readSettings(env);
    await requireGivenPort(env);
    const guardian = startGuardian();
    closing.push(() => guardian.stop());
    const lock = await takeLock(settings.dir, guardian.pid);
    closing.unshift(() => lock.release());
    if (args.includes("--reset")) {
      resetNetwork(settings.dir);
      settings = readSettings(env);
    }

    const network = await startNetwork({
      ...settings,
      guardian,
      persistent: true,
      blockTime: BLOCK_TIME_SECONDS,
      report,
    });
    closing.push(() => network.stop());
    if (isStopping) return;

    const wanted = wantedPort(env);
    const logPath = join(settings.dir, "logs", "service.log");
    setAside(logPath, MAX_LOG_BYTES);
    const logs = destination({ dest: logPath, mkdir: true, sync: false });
    let sandbox: Sandbox | undefined;
    const { port, listening: service } = await listenOnFreePort(
      { wanted, host: env.HOST || undefined },
      async (candidate) => {
        const config = settings.serviceConfig({ ...network, port: candidate });
        // BASE_URL can be a proxy's.
        const baseUrl = urlOf(config);
        sandbox = network.parts.chain === undefined ? undefined : createSandbox({ ...network, baseUrl });
        const logger = createLogger(config.logLevel, logs);
        return createService(config, { logger, routes: sandbox?.routes });
      },
    );
    closing.push(() => service.stop());
    closing.push(() => sandbox?.stop());
    if (wanted !== 0 && port !== wanted) report(`Port ${wanted} is in use: taking ${port}.`);
    // The indexer reports that it is ready before it has indexed the newest blocks.
    const isReady = async () => (await fetch(`${urlOf({ host: env.HOST || LOOPBACK, port })}/ready`)).ok;
    await until("the service is ready", async () => isStopping || (await isReady()), {
      timeoutMs: READY_TIMEOUT_MS,
    });
    if (isStopping) return;
    sandbox?.start();
    const { databaseUrl, rpcUrl, deploymentPath } = network;
    const addressFile = join(settings.dir, "network.json");
    const ownerPrivateKey = localOwnerKey();
    const addresses = { baseUrl: service.url, databaseUrl, rpcUrl, deploymentPath, ownerPrivateKey };
    // For the demo and the commands. Mode 600: the database URL holds its password.
    writeFileSync(addressFile, `${JSON.stringify(addresses, null, 2)}\n`, { mode: 0o600 });
    closing.push(() => rmSync(addressFile, { force: true }));
    report(summary({ url: service.url, network, settings, seconds: (Date.now() - startedAt) / 1000 }));
  };

  const starting = start().then(
    () => "ready" as const,
    (error: unknown) => ({ error }),
  );
  let outcome = await Promise.race([starting, signal]);
  if (outcome === "ready") outcome = await signal;
  isStopping = true;
  if (typeof outcome === "object") console.error(describe(outcome.error));
  else console.log("\nStopping.");
  // A part that is still starting is not on the list; the guardian ends its process.
  for (const close of closing.reverse()) await close();
  return typeof outcome === "object" ? 1 : 0;
}

/** Throws ConfigError if PORT names a port that is in use; only the default port gives way to another. */
async function requireGivenPort({ PORT, HOST }: Environment): Promise<void> {
  const given = Number(PORT || 0);
  if (given === 0 || (await freePort(given, HOST || undefined)) === given) return;
  throw new ConfigError(
    `PORT: ${given} is in use; stop the program that listens there, or choose another port`,
  );
}

/** Where a service that listens on this host and port can be reached from this machine. */
function urlOf({ host, port }: { host: string; port: number }): string {
  const name = ["0.0.0.0", "::"].includes(host) ? LOOPBACK : host;
  return `http://${isIPv6(name) ? `[${name}]` : name}:${port}`;
}

/** Renames a file that is larger than `maxBytes`, in place of the one that was renamed before. */
function setAside(path: string, maxBytes: number): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > maxBytes) renameSync(path, `${path}.old`);
}

/** The processes that end with npm, as they were when this process began. */
interface Launcher {
  /** npm's shell, or npm; null if it had ended already. */
  parent: number | null;
  /** npm, if the parent is its shell. */
  grandparent: number | null;
}

/** A supervisor can have inherited npm's variables, but those of another script. */
function isRunByNpm(env: Environment): boolean {
  return env.npm_lifecycle_script?.includes("tools/start.mjs") ?? false;
}

/** Resolves once npm has ended (docs/build.md, "Launched by npm, ended with npm"); never if launched directly. */
function npmEnds({ parent, grandparent }: Launcher): Promise<"npm ended"> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (process.ppid === parent && (grandparent === null || isAlive(grandparent))) return;
      clearInterval(timer);
      resolve("npm ended");
    }, LAUNCHER_CHECK_MS);
    timer.unref();
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Resolves at the first signal; later ones do nothing. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => resolve(name));
  });
}

/** An error of the node's client names its URL, which can hold a key. */
export function describe(error: unknown, isDebugging = Boolean(process.env.DEBUG)): string {
  if (error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return withoutUrls(String(error));
  const frames = isDebugging ? (describeError(error).stack ?? []) : [];
  return [withoutUrls(error.message), ...frames].join("\n");
}

interface Started {
  url: string;
  network: Pick<Network, "rpcUrl" | "deployment" | "parts">;
  settings: Pick<LocalSettings, "dir" | "databaseUrl">;
  seconds: number;
}

export function summary({ url, network, settings, seconds }: Started): string {
  const { deployment } = network;
  return [
    "",
    `Working Contract service is ready after ${seconds.toFixed(1)} s`,
    "",
    `  API and pages   ${url}`,
    `  API reference   ${url}/openapi.json`,
    `  Health          ${url}/ready`,
    `  Chain           ${network.rpcUrl} (chain ${deployment.chainId})`,
    ...(settings.databaseUrl === undefined ? [] : ["  Database        from DATABASE_URL"]),
    `  Stablecoin      ${deployment.asset.address} (${deployment.asset.symbol})`,
    `  Data and logs   ${relative(process.cwd(), settings.dir) || "."}`,
    "",
    ...(network.parts.chain === undefined
      ? []
      : ["  Test money      npm run fund -- <address> <amount>", `  Sandbox         ${url}/sandbox`]),
    "  Ctrl-C stops everything.",
    "",
  ].join("\n");
}
