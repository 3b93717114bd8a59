/** `npm start`: the whole service on this machine, supervised; Ctrl-C ends all of it. */
import { join, relative } from "node:path";
import { destination, pino } from "pino";
import { ConfigError } from "../config.js";
import { createService } from "../main.js";
import { takeLock } from "./lock.js";
import { resetNetwork, startNetwork } from "./network.js";
import { freePort } from "./ports.js";
import { startGuardian } from "./processes.js";
import { type Environment, type LocalSettings, readSettings, wantedPort } from "./settings.js";

const BLOCK_TIME_SECONDS = 1;

/** Runs until a signal arrives; the result is the exit code. */
export async function run(env: Environment, args: readonly string[]): Promise<number> {
  const startedAt = Date.now();
  const report = (line: string): void => console.log(line);
  const closing: (() => Promise<void> | void)[] = [];
  const signal = nextSignal();
  let isStopping = false;

  const start = async (): Promise<void> => {
    let settings = readSettings(env);
    const guardian = startGuardian();
    closing.push(() => guardian.stop());
    const lock = await takeLock(settings.dir, guardian.pid);
    closing.push(() => lock.release());
    if (args.includes("--reset")) {
      resetNetwork(settings.dir);
      settings = readSettings(env);
    }

    const network = await startNetwork({ ...settings, guardian, persistent: true, blockTime: BLOCK_TIME_SECONDS, report });
    closing.push(() => network.stop());
    if (isStopping) return;

    const wanted = wantedPort(env);
    const port = await freePort(wanted, env.HOST || undefined);
    if (port !== wanted) report(`Port ${wanted} is in use: taking ${port}.`);
    const config = settings.serviceConfig({ ...network, port });
    const logPath = join(settings.dir, "logs", "service.log");
    const logger = pino({ level: config.logLevel }, destination({ dest: logPath, mkdir: true, sync: false }));
    const service = await createService(config, { logger });
    closing.push(() => service.stop());
    if (isStopping) return;
    report(summary({ url: service.url, network, settings, seconds: (Date.now() - startedAt) / 1000 }));
  };

  const starting = start().then(
    () => null,
    (error: unknown) => ({ error }),
  );
  const outcome = await Promise.race([starting, signal]);
  let code = 0;
  if (outcome !== null && typeof outcome === "object") {
    console.error(describe(outcome.error));
    code = 1;
  } else {
    await signal;
    report("\nStopping.");
  }
  isStopping = true;
  await starting;
  for (const close of closing.reverse()) await close();
  return code;
}

/** Resolves at the first signal; later ones are ignored while everything comes to its end. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => resolve(name));
  });
}

function describe(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  return error instanceof Error ? (process.env.DEBUG ? (error.stack ?? error.message) : error.message) : String(error);
}

function summary({
  url,
  network,
  settings,
  seconds,
}: {
  url: string;
  network: Awaited<ReturnType<typeof startNetwork>>;
  settings: LocalSettings;
  seconds: number;
}): string {
  const { deployment } = network;
  return [
    "",
    `Working Contract service is ready after ${seconds.toFixed(1)} s`,
    "",
    `  API and pages   ${url}`,
    `  API reference   ${url}/openapi.json`,
    `  Health          ${url}/ready`,
    `  Chain           ${network.rpcUrl} (chain ${deployment.chainId})`,
    `  Stablecoin      ${deployment.asset.address} (${deployment.asset.symbol})`,
    `  Data and logs   ${relative(process.cwd(), settings.dir) || "."}`,
    "",
    ...(network.parts.chain === undefined ? [] : ["  Test money      npm run fund -- <address> <amount>"]),
    "  Ctrl-C stops everything.",
    "",
  ].join("\n");
}
