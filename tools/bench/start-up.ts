/** Time from `npm start` to ready: in a new clone, in a new data folder, and when it resumes. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../src/root.js";
import { launchNetwork } from "../demo/network.js";
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

async function start(dir: string, root = ROOT): Promise<number> {
  const startedAt = performance.now();
  const network = await launchNetwork(dir, root);
  const seconds = round((performance.now() - startedAt) / 1000, 1);
  await network.stop();
  return seconds;
}
