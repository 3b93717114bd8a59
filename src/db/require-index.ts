/** Reads of the index, while it shows less than it did. */
import { sql } from "drizzle-orm";
import { AppError } from "../errors.js";
import type { Executor } from "./client.js";
import { isIndexWhole } from "./onchain.js";

/** A row that was read together with {@link isIndexWhole}. */
export interface IndexedRow {
  indexIsWhole: boolean;
}

/**
 * To be called with what was read, or after it: throws 503 `unavailable` where the views are, or were then, of an earlier
 * time than what callers were shown before.
 */
export async function requireIndex(db: Executor, rows: readonly IndexedRow[] = []): Promise<void> {
  const [row] = rows;
  if (row === undefined ? await isWhole(db) : row.indexIsWhole) return;
  throw new AppError("unavailable", {
    message: "The index of the chain is catching up after a restart; repeat the call.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}

async function isWhole(db: Executor): Promise<boolean> {
  const { rows } = await db.execute<{ whole: boolean }>(sql`select ${isIndexWhole} as whole`);
  return rows[0]?.whole === true;
}
