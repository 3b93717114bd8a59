/** Programs in separate processes: the service's as they are built, others bundled in the same way. */
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { ROOT } from "../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is compiled.
import { bundlePrograms, ensurePrograms, PROGRAMS, SERVICE } from "../../tools/build.mjs";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { type Finished, runProcess, startProcess } from "./run-process.js";

const CACHE = join(ROOT, "node_modules/.cache/programs");
const START_TIMEOUT_MS = 120_000;
const bundles = new Map<string, Promise<string>>();

/** The module and all that it imports, from the sources of this moment, as one file that Node runs alone. */
export function bundled(entry: string): Promise<string> {
  let bundle = bundles.get(entry);
  if (bundle === undefined) {
    bundle = bundleProgram(entry);
    bundles.set(entry, bundle);
  }
  return bundle;
}

/** The service's programs stay; any other bundle is gone with this process. */
async function bundleProgram(entry: string): Promise<string> {
  const name = Object.keys(PROGRAMS).find((program) => PROGRAMS[program] === entry);
  if (name !== undefined) {
    await ensurePrograms();
    return join(SERVICE, `${name}.mjs`);
  }
  mkdirSync(CACHE, { recursive: true });
  const dir = mkdtempSync(join(CACHE, `${basename(entry, ".ts")}-`));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  await bundlePrograms({ main: entry }, dir);
  return join(dir, "main.mjs");
}

/** Runs a program of this repository to its end. */
export async function runProgram(
  entry: string,
  args: readonly string[],
  env: Record<string, string | undefined> = {},
): Promise<Finished> {
  return runProcess(process.execPath, [await bundled(entry), ...args], { env });
}

/** Runs an operator's command to its end. */
export const runOperator = (
  args: readonly string[],
  env: Record<string, string | undefined>,
): Promise<Finished> => runProgram("src/commands/operator.ts", args, env);

export type ServiceProcess = Awaited<ReturnType<typeof startServiceProcess>>;

/** Starts a process of the service, by `command` if given, with nothing but these settings; resolves once it is ready. */
export async function startServiceProcess(
  settings: Record<string, string | undefined>,
  { port, logPath, command }: { port?: number; logPath?: string; command?: [string, ...string[]] } = {},
) {
  const [program, ...args] = command ?? [process.execPath, await bundled("src/commands/serve.ts")];
  const listening = port ?? (await freePort());
  const started = startProcess(program, args, { env: { ...settings, PORT: String(listening) } });
  const { child, output, exited } = started;
  const log = logPath === undefined ? undefined : createWriteStream(logPath, { flags: "a" });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => log?.write(chunk));
  const url = `http://127.0.0.1:${listening}`;
  const isReady = async (): Promise<boolean> =>
    child.exitCode !== null || (await fetch(`${url}/ready`)).status === 200;
  await until("the process is ready", isReady, { timeoutMs: START_TIMEOUT_MS });
  if (child.exitCode !== null) throw new Error(`The process ended: ${output()}`);
  return {
    ...started,
    url,
    /** Resolves once it is gone. */
    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
      child.kill(signal);
      await exited;
      log?.end();
    },
  };
}
