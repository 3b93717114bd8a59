/** Runs programs as a user does: in separate processes and in a separate folder. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import { clockOptions } from "./chain-time.js";

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program until it ends, or for at most `timeoutMs`. Rejects only if it cannot be started. */
export function runProcess(
  command: string,
  args: readonly string[],
  {
    cwd = ROOT,
    env = {},
    input,
    timeoutMs = 90_000,
  }: { cwd?: string; env?: Record<string, string | undefined>; input?: string; timeoutMs?: number } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, NODE_OPTIONS: clockOptions(), ...env },
      timeout: timeoutMs,
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Starts a program and collects its output. Of this process's environment it gets only PATH and HOME. */
export function startProcess(
  command: string,
  args: readonly string[],
  {
    env,
    cwd = ROOT,
    detached = false,
  }: { env: Record<string, string | undefined>; cwd?: string; detached?: boolean },
) {
  const { PATH, HOME } = process.env;
  const child = spawn(command, args, {
    cwd,
    detached,
    env: { PATH, HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  return {
    child,
    /** Its output so far. */
    output: () => output,
    /** The exit code, null after a signal. */
    exited: new Promise<number | null>((resolve) => child.once("close", resolve)),
  };
}

/** A new folder, like a user's own project, from which Node finds the installed packages. */
export function newProject(): { dir: string; remove(): void } {
  const cache = join(ROOT, "node_modules/.cache/projects");
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, "project-"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
