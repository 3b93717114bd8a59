/** One process of the service, as `npm run serve` starts it, behind separate proxies to the database and the node. */
import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, readFileSync } from "node:fs";
import type { Guardian } from "../../../src/indexer/supervision/guardian.js";
import { until } from "../../../tools/local/processes.js";
import { ownPort } from "./own-port.js";
import { startRpcProxy } from "./rpc-proxy.js";
import { startTcpProxy } from "./tcp-proxy.js";

export type ServiceProcess = Awaited<ReturnType<typeof prepareProcess>>;

export interface ServiceProcessOptions {
  name: string;
  databaseUrl: string;
  rpcUrl: string;
  guardian: Guardian;
  logPath: string;
  env: Record<string, string>;
  /** The service's code, bundled. */
  script: string;
}

/** Shifts the process's clock by CLOCK_OFFSET_SECONDS, before anything else is loaded. */
const CLOCK = new URL("./shifted-clock.mjs", import.meta.url).href;
const START_TIMEOUT_MS = 120_000;

export async function prepareProcess(options: ServiceProcessOptions) {
  const { name, guardian, script } = options;
  const databaseUrl = new URL(options.databaseUrl);
  const database = await startTcpProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
  databaseUrl.port = String(database.port);
  const rpc = await startRpcProxy(options.rpcUrl);
  const port = await ownPort();
  const url = `http://127.0.0.1:${port}`;
  const log = createWriteStream(options.logPath, { flags: "a" });
  const { PATH = "", HOME = "" } = process.env;
  let env: Record<string, string> = { PATH, HOME, ...options.env };
  let child: ChildProcess | undefined;
  let gone: Promise<void> = Promise.resolve();

  const signal = async (kind: NodeJS.Signals): Promise<void> => {
    child?.kill(kind);
    await gone;
  };
  return {
    name,
    url,
    database,
    rpc,
    isRunning: () => child !== undefined,
    /** The end of its log if it does not run, to say why. */
    lastWords: (): string[] =>
      child === undefined ? [`${name}: ${readFileSync(options.logPath, "utf8").slice(-2_000)}`] : [],
    pid: () => child?.pid,
    /** Starts the process unless it runs; resolves once it responds. The settings replace earlier ones and persist. */
    async start(more: Record<string, string> = {}): Promise<void> {
      if (child !== undefined) return;
      env = { ...env, ...more };
      const started = spawn(process.execPath, ["--import", CLOCK, script], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...env, DATABASE_URL: databaseUrl.href, RPC_URL: rpc.url, PORT: String(port) },
      });
      child = started;
      guardian.watch(started.pid ?? 0);
      started.stdout.pipe(log, { end: false });
      started.stderr.pipe(log, { end: false });
      const ended = new AbortController();
      gone = new Promise((resolve) => {
        started.once("close", () => {
          ended.abort();
          guardian.forget(started.pid ?? 0);
          if (child === started) child = undefined;
          resolve();
        });
      });
      const answers = async (): Promise<boolean> => (await fetch(`${url}/health`)).ok;
      await until(`${name} answers`, answers, { timeoutMs: START_TIMEOUT_MS, signal: ended.signal });
    },
    /** kill -9; resolves once it is gone. */
    kill: () => signal("SIGKILL"),
    /** SIGSTOP and SIGCONT. */
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
    async stop(): Promise<void> {
      child?.kill("SIGCONT");
      await signal("SIGKILL");
      await database.stop();
      await rpc.stop();
      log.end();
    },
  };
}
