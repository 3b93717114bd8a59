/** Guards reads of the index while it shows less than before. */
import { sql } from "drizzle-orm";
import { AppError } from "../errors.js";
import type { Executor } from "./client.js";
import { isIndexWhole } from "./onchain.js";

/** A row read together with {@link isIndexWhole}. */
export interface IndexedRow {
  indexIsWhole: boolean;
}

/**
 * Throws `unavailable` (503) if the views are, or were when `rows` were read, older than the state already shown to
 * callers. Call it with the rows, or after the read.
 */
export async function requireIndex(db: Executor, rows: readonly IndexedRow[] = []): Promise<void> {
  const [row] = rows;
  if (row === undefined ? await isWhole(db) : row.indexIsWhole) return;
  throw new AppError("unavailable", {
    message: "The chain index is catching up after a restart. Retry the request.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}

async function isWhole(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ whole: boolean }>(sql`select ${isIndexWhole} as whole`);
  return rows[0]?.whole === true;
}
