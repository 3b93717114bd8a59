/** Programs as a user runs them: other processes, in a folder of their own. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end, at most `timeoutMs`; never rejects for what the program does. */
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
      env: { ...process.env, NODE_OPTIONS: "", ...env },
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

/** A new folder from which node finds the installed packages, as in a project of the user's own. */
export function newProject(): { dir: string; remove(): void } {
  const cache = join(ROOT, "node_modules/.cache/projects");
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, "project-"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
