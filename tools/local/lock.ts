/** One supervisor per folder: a lock file with the holder's pid, and its start time because pids are reused. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../src/indexer/supervision/processes.js";

export const LOCK_NAME = "lock";

interface Holder {
  pid: number;
  /** When that process started, in the system's own format. */
  startedAt: string;
  /** Ends the holder's children if the holder is killed. */
  guardianPid: number;
}

export interface Lock {
  release(): void;
}

/** Takes the lock. Waits until the children of a killed holder have ended; throws if another supervisor is running. */
export async function takeLock(dir: string, guardianPid: number): Promise<Lock> {
  const path = join(dir, LOCK_NAME);
  mkdirSync(dir, { recursive: true });
  const mine: Holder = { pid: process.pid, startedAt: startOf(process.pid) ?? "", guardianPid };
  for (;;) {
    try {
      writeFileSync(path, JSON.stringify(mine), { flag: "wx" });
      return { release: () => rmSync(path, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const text = read(path);
    if (text === null) continue;
    const holder = parse(text);
    if (holder !== null) {
      if (startOf(holder.pid) === holder.startedAt) {
        throw new Error(`Already running in this folder (process ${holder.pid}): stop that one first.`);
      }
      const isGone = async () => startOf(holder.guardianPid) === null;
      await until("the processes of an earlier run have ended", isGone, { timeoutMs: 15_000 });
    }
    // Two starters can be here at once: the one that moved away the other's fresh lock puts it back.
    const aside = `${path}.${process.pid}`;
    try {
      renameSync(path, aside);
      if (read(aside) !== text) renameSync(aside, path);
      else rmSync(aside, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** A lock file truncated by a power failure belongs to no one. */
function parse(text: string): Holder | null {
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return null;
  }
}

/** When a process started; null if there is none. */
function startOf(pid: number): string | null {
  if (process.platform === "linux") {
    const stat = read(`/proc/${pid}/stat`);
    // The name, in brackets, can contain spaces; the start time is the 20th field after it.
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    const isDead = fields === undefined || fields[0] === "Z";
    return isDead ? null : `${read("/proc/sys/kernel/random/boot_id")?.trim()} ${fields[19]}`;
  }
  const { stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
  return stdout?.trim() || null;
}
