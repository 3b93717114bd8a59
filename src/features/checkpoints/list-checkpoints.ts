/** GET /v1/contracts/{id}/checkpoints: one page, or all of them as a stream. */

import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { checkpoint } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import type { CheckpointRow } from "./merkle.js";
import { type CheckpointView, toCheckpoint } from "./view.js";

/** Rows read at once: each `data` can have 64 KiB. */
const CHUNK = 50;

/**
 * Checkpoints after the one named by `cursor`, oldest first. Throws `invalid_request` if the cursor names none of
 * this contract.
 */
export async function listCheckpoints(
  db: Executor,
  { contractId, limit, cursor }: { contractId: Address; limit: number; cursor?: string | undefined },
): Promise<{ checkpoints: CheckpointView[]; nextCursor: string | null }> {
  const after = cursor === undefined ? -1 : await positionOf(db, contractId, cursor);
  const rows = await readAfter(db, { contractId, after, limit: limit + 1 });
  const page = rows.slice(0, limit);
  return {
    checkpoints: page.map(toCheckpoint),
    nextCursor: page.length < rows.length ? (page.at(-1)?.id ?? null) : null,
  };
}

/** All checkpoints, oldest first, read as the consumer takes them. */
export async function* streamCheckpoints(db: Executor, contractId: Address): AsyncGenerator<CheckpointView> {
  let after = -1;
  for (;;) {
    const rows = await readAfter(db, { contractId, after, limit: CHUNK });
    for (const row of rows) yield toCheckpoint(row);
    after = rows.at(-1)?.position ?? after;
    if (rows.length < CHUNK) return;
  }
}

function readAfter(
  db: Executor,
  { contractId, after, limit }: { contractId: string; after: number; limit: number },
): Promise<CheckpointRow[]> {
  return db
    .select()
    .from(checkpoint)
    .where(and(eq(checkpoint.contractId, contractId), gt(checkpoint.position, after)))
    .orderBy(asc(checkpoint.position))
    .limit(limit);
}

async function positionOf(db: Executor, contractId: string, id: string): Promise<number> {
  const [row] = await db
    .select({ position: checkpoint.position })
    .from(checkpoint)
    .where(and(eq(checkpoint.contractId, contractId), eq(checkpoint.id, id)));
  if (row !== undefined) return row.position;
  const message = "names no checkpoint of this contract; use the nextCursor of a response";
  throw new AppError("invalid_request", {
    message: `cursor: ${message}.`,
    details: [{ path: "cursor", message }],
  });
}
