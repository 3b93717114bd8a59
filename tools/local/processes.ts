/** Child processes that are restarted when they die, and never outlive this process. */
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { Guardian } from "../../src/indexer/supervision/guardian.js";
import { withoutUrls } from "../../src/logger.js";

interface SpawnPlan {
  command: string;
  args: readonly string[];
  env?: Record<string, string | undefined>;
  cwd?: string;
  uid?: number;
  gid?: number;
}

/** Given by the owner of the network to each of its parts. */
export interface PartOptions {
  guardian: Guardian;
  logPath: string;
  report(line: string): void;
}

interface SupervisedOptions extends PartOptions {
  name: string;
  /** Called before every start, to prepare it. */
  plan(): Promise<SpawnPlan>;
  /** Resolves once the child is serving. The signal aborts if the child dies first. */
  ready(signal: AbortSignal): Promise<void>;
}

export interface Supervised {
  pid(): number | undefined;
  /** Ends the child, by force if necessary. It then starts again as after any other exit. */
  restart(): void;
  stop(): Promise<void>;
}

const STOP_GRACE_MS = 15_000;
const MAX_BACKOFF_MS = 30_000;
/** After running this long, a child restarts with the shortest pause again. */
const HEALTHY_AFTER_MS = 60_000;
const LOG_TAIL_LINES = 12;

/** Starts a child and resolves once it is ready. If the first start fails, rejects with the end of its log. */
export async function supervise(options: SupervisedOptions): Promise<Supervised> {
  mkdirSync(dirname(options.logPath), { recursive: true });
  const log = createWriteStream(options.logPath, { flags: "a" });
  // A log that cannot be written must not end this process.
  log.on("error", () => {});
  const stopping = new AbortController();
  let backoff = 1000;
  let current = await launch(options, log);
  let startedAt = performance.now();
  try {
    await current.ready;
  } catch (error) {
    await current.stop();
    log.end();
    throw error;
  }

  const startAgain = async (): Promise<void> => {
    try {
      current = await launch(options, log);
      startedAt = performance.now();
      if (stopping.signal.aborted) return;
      await current.ready;
      options.report(`${options.name} is running again.`);
    } catch (error) {
      if (!stopping.signal.aborted) options.report(`${options.name}: ${(error as Error).message}`);
    }
  };
  const keepAlive = async (): Promise<void> => {
    for (;;) {
      const ending = await current.exited;
      if (stopping.signal.aborted) return;
      if (performance.now() - startedAt > HEALTHY_AFTER_MS) backoff = 1000;
      options.report(
        `${options.name} exited (${ending}). Restarting in ${backoff / 1000} s. Log: ${options.logPath}`,
      );
      await delay(backoff, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted || options.guardian.isStopping) return;
      backoff = Math.min(backoff * 2, MAX_BACKOFF_MS);
      await startAgain();
      if (stopping.signal.aborted) await current.stop();
    }
  };
  const watching = keepAlive();

  return {
    pid: () => current.child.pid,
    restart: () => void current.stop(),
    async stop() {
      stopping.abort();
      await current.stop();
      await watching;
      log.end();
    },
  };
}

async function launch(options: SupervisedOptions, log: NodeJS.WritableStream) {
  const { command, args, ...plan } = await options.plan();
  const child = spawn(command, args, { detached: true, stdio: ["ignore", "pipe", "pipe"], ...plan });
  const { pid } = child;
  if (pid !== undefined) options.guardian.watch(pid);

  let tail: string[] = [];
  const keep = (text: string): void => {
    const line = withoutUrls(text);
    log.write(`${line}\n`);
    if (line !== "") tail = [...tail, line].slice(-LOG_TAIL_LINES);
  };
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on("line", keep);

  const gone = new AbortController();
  const exited = new Promise<string>((resolve) => {
    const end = (words: string) => {
      if (pid !== undefined) options.guardian.forget(pid);
      gone.abort();
      resolve(words);
    };
    child.once("error", (error) => end(error.message));
    child.once("close", (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
  const diedFirst = exited.then((ending) => {
    throw new Error([`${options.name} did not start (${ending}):`, ...tail].join("\n"));
  });
  const ready = Promise.race([options.ready(gone.signal), diedFirst]);
  diedFirst.catch(() => {});
  ready.catch(() => {});

  return {
    child,
    ready,
    /** Resolves to its exit code, signal or error, in words. */
    exited,
    async stop(): Promise<void> {
      child.kill("SIGINT");
      const killer = setTimeout(() => child.kill("SIGKILL"), STOP_GRACE_MS);
      await exited;
      clearTimeout(killer);
    },
  };
}

/** Polls until `isTrue` resolves to true. Throws after `timeoutMs`, caused by its last rejection, or if `signal` aborts. */
export async function until(
  what: string,
  isTrue: () => Promise<boolean>,
  { timeoutMs, intervalMs = 50, signal }: { timeoutMs: number; intervalMs?: number; signal?: AbortSignal },
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let cause: unknown;
  const isMet = () =>
    isTrue().catch((error: unknown) => {
      cause = error;
      return false;
    });
  while (!(await isMet())) {
    if (signal?.aborted) throw new Error(`Aborted while waiting until ${what}.`);
    if (performance.now() > deadline)
      throw new Error(`Timed out after ${timeoutMs / 1000} s waiting until ${what}.`, { cause });
    await delay(intervalMs);
  }
}

/** A file's text; null if it cannot be read, as of a process that has ended meanwhile. */
export function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
