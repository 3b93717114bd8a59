/** Time from `npm start` to ready: in a new clone, in a new data folder, and when it resumes. */
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import { round } from "./load.js";

export interface StartUp {
  /** Seconds in a new clone, its install included. */
  clone: number;
  /** Seconds with a new data folder, with dependencies installed. */
  first: number;
  again: number;
}

export async function measureStartUp(): Promise<StartUp> {
  const dir = mkdtempSync(join(tmpdir(), "bench-start-"));
  chmodSync(dir, 0o755);
  try {
    const clone = join(dir, "clone");
    execFileSync("git", ["clone", "--quiet", ROOT, clone]);
    return {
      clone: await start(join(dir, "data of the clone"), clone),
      first: await start(join(dir, "data")),
      again: await start(join(dir, "data")),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function start(dir: string, root = ROOT): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [join(root, "tools/start.mjs")], {
    env: { ...process.env, DATA_DIR: dir, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    let seconds: number | undefined;
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      if (seconds !== undefined || !output.includes("is ready after")) return;
      seconds = round((performance.now() - startedAt) / 1000, 1);
      child.kill("SIGINT");
    });
    child.once("close", () => {
      if (seconds === undefined) reject(new Error(`npm start did not become ready:\n${output}`));
      else resolve(seconds);
    });
  });
}
