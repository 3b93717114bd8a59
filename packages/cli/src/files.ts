/** Files of the caller's own: keys, and what was spent. */
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const LOCK_TRIES = 200;
const LOCK_PAUSE_MS = 10;

/** What a JSON file holds; null where there is none. Throws where it is not JSON. */
export function readPrivateJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${path} cannot be read; mend or remove it.`);
  }
}

/** Written whole or not at all, readable by its owner alone. */
export function writePrivateJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

/**
 * Performs while no other process does, for the same path. Throws after two seconds of waiting: where a process died
 * within, its lock stays until somebody removes it.
 */
export function exclusively<T>(path: string, perform: () => T): T {
  const lock = `${path}.lock`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    try {
      closeSync(openSync(lock, "wx", 0o600));
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      if (attempt === LOCK_TRIES)
        throw new Error(`${lock} is held; remove it where no other wcontract runs.`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_PAUSE_MS);
    }
  }
  try {
    return perform();
  } finally {
    rmSync(lock, { force: true });
  }
}
