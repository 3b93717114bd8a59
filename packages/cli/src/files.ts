/** Private files: API keys, spending, submitted checkpoints and votes. */
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import {
  type PlannedPayment,
  SpendingLimitError,
  type SubmissionStore,
} from "@working-contracts/client/index";
import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import { z } from "zod";
import { UsageError } from "./errors.js";

/** Reads a file that an option or `setting` names. Throws UsageError if it cannot be read. */
export function readNamed(path: string, setting?: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`Cannot read ${path}${setting ? ` (${setting})` : ""}: ${(error as Error).message}`);
  }
}

const LOCK_TRIES = 200;
const LOCK_PAUSE_MS = 10;

/** Reads a JSON file. Returns null if it does not exist; throws if it is not JSON. */
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
    throw new Error(`${path} is not valid JSON. Repair or delete it.`);
  }
}

/** Writes a JSON file atomically, readable only by its owner. */
export function writePrivateJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

/** An address, a hash or a text. A full disk or a crash can leave an empty file, and a part of a line. */
const isKept = (line: string): line is `0x${string}` =>
  /^0x(?:[0-9a-f]{40}|(?:[0-9a-f]{2}){32,})$/.test(line);

/** Keeps what was submitted: for each contract hashes of checkpoints and sealed texts, and in one file the contracts voted on. */
export function submittedIn(dir: string): SubmissionStore {
  /** A contract's id, or `votes-<factory>`. */
  const nameOf = (key: string): string => key.replace("checkpoints/", "").replace("/", "-");
  const fileOf = (key: string): string => join(dir, `${encodeURIComponent(nameOf(key))}.txt`);
  return {
    read(key) {
      if (!existsSync(fileOf(key))) return [];
      return readFileSync(fileOf(key), "utf8").split("\n").filter(isKept);
    },
    add: (key, value) => appendPrivateLine(fileOf(key), value),
  };
}

/**
 * Creates the file, readable only by its owner, and its folder if they do not exist. A part of a line, which a crash can
 * leave, stays a separate line.
 */
export function appendPrivateLine(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, "a+", 0o600);
  try {
    const last = Buffer.from("\n");
    readSync(file, last, { position: Math.max(0, fstatSync(file).size - 1) });
    appendFileSync(file, `${String(last) === "\n" ? "" : "\n"}${line}\n`, { flush: true });
  } finally {
    closeSync(file);
  }
}

/** Runs `perform` under a lock file, for which it waits two seconds. One of a process that died is deleted by hand. */
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
        throw new Error(`${lock} is held. If no other wcontract is running, delete it.`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_PAUSE_MS);
    }
  }
  try {
    return perform();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** A day of UTC, and a decimal in the stablecoin. */
const LedgerSchema = z.object({ day: z.iso.date(), spent: z.string() });
type Ledger = z.infer<typeof LedgerSchema>;

/** Caps per call and per day. Counts before signing (a signature works whatever the outcome). Throws SpendingLimitError above one. */
export function createSpendingLedger(
  path: string,
  /** Smallest unit of the stablecoin. */
  { perCall, perDay }: { perCall: bigint; perDay: bigint },
  now: () => Date = () => new Date(),
) {
  return {
    count({ amount, decimal, currency, resource }: PlannedPayment): void {
      if (currency === "protocol-token") return;
      if (amount > perCall)
        throw new SpendingLimitError(
          `${resource} costs ${decimal}, more than the cap of ${formatDecimal(perCall)} per call (--max-per-call). Nothing was signed.`,
        );
      exclusively(path, () => {
        const { day, spent } = read();
        const ahead =
          day > today() ? ` ${path} counts for ${day}: if the clock was wrong then, delete the file.` : "";
        if (spent + amount > perDay)
          throw new SpendingLimitError(
            `${resource} costs ${decimal}. Together with today's ${formatDecimal(spent)}, this exceeds the cap of ${formatDecimal(perDay)} per day (--max-per-day). Nothing was signed.${ahead}`,
          );
        writePrivateJson(path, { day, spent: formatDecimal(spent + amount) } satisfies Ledger);
      });
    },
    spentToday: () => read().spent,
  };

  function today(): string {
    return now().toISOString().slice(0, 10);
  }

  /** The day is the later of today and the stored one, so setting the clock back does not reset the cap. */
  function read(): { day: string; spent: bigint } {
    const stored = readPrivateJson(path);
    if (stored === null) return { day: today(), spent: 0n };
    const ledger = LedgerSchema.safeParse(stored);
    const spent = ledger.success ? parseDecimal(ledger.data.spent) : null;
    if (!ledger.success || spent === null)
      throw new Error(`${path} is not a spending record. Repair or delete it.`);
    return ledger.data.day < today() ? { day: today(), spent: 0n } : { day: ledger.data.day, spent };
  }
}
