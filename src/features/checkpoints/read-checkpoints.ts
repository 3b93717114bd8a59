/** Reads of checkpoints: one page, all of them as a stream, or the proof of one. */

import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, lte } from "drizzle-orm";
import { createConcurrencyLimit } from "../../concurrency-limit.js";
import type { Executor } from "../../db/client.js";
import { checkpoint } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, invalidField } from "../../errors.js";
import { HexViewSchema, type Page } from "../../http/schemas.js";
import { loadContract } from "../contracts/view.js";
import { type CheckpointsBy, isBy, readLastCheckpoint } from "./checkpoint-trees.js";
import { type CheckpointContent, type CheckpointRow, proofOf, rootOf } from "./merkle.js";

/** A Checkpoint as the API shows it (specification, "Checkpoint"). */
export const CheckpointSchema = z
  .object({
    id: z.string(),
    contractId: z.string(),
    fromSequence: z.number().int(),
    toSequence: z.number().int(),
    merkleRoot: z.string(),
    lastReceiptHash: z.string(),
    teeMeasurement: z.string(),
    teeSignature: z.string(),
    data: z.record(z.string(), z.unknown()),
    checkpointedAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
  })
  .openapi("Checkpoint");

export type CheckpointView = z.infer<typeof CheckpointSchema>;

export function toCheckpoint(
  row: CheckpointContent & Pick<CheckpointRow, "id" | "createdAt">,
): CheckpointView {
  return {
    id: row.id,
    contractId: row.contractId,
    fromSequence: row.fromSequence,
    toSequence: row.toSequence,
    merkleRoot: row.merkleRoot,
    lastReceiptHash: row.lastReceiptHash,
    teeMeasurement: row.teeMeasurement,
    teeSignature: row.teeSignature,
    data: row.data,
    checkpointedAt: row.checkpointedAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
  };
}

const START = { position: -1, totalBytes: 0 };

/**
 * Checkpoints after the one named by `cursor`, oldest first: `limit` of them, or as many as fit into the bytes of a page.
 * Throws `invalid_request` if the cursor names none of this contract.
 */
export async function listCheckpoints(
  db: Executor,
  { by, limit, cursor }: { by: CheckpointsBy; limit: number; cursor?: string | undefined },
): Promise<Page<CheckpointView>> {
  const after = cursor === undefined ? START : await placeOf(db, by, cursor);
  const rows = await readAfter(db, { by, after, limit });
  const end = rows.at(-1);
  const isLast = end?.position === (await readLastCheckpoint(db, by))?.position;
  return { data: rows.map(toCheckpoint), nextCursor: isLast ? null : (end?.id ?? null) };
}

/** Two pages of all streamed lists are read at a time, which leaves the processor to writes. */
const limitReads = createConcurrencyLimit(2);

/** All checkpoints, oldest first, read page by page as the consumer takes them. */
export async function* streamCheckpoints(db: Executor, by: CheckpointsBy): AsyncGenerator<CheckpointView> {
  let after = START;
  for (;;) {
    const rows = await limitReads(() => readAfter(db, { by, after, limit: LIMITS.maxPageSize }));
    for (const row of rows) yield toCheckpoint(row);
    const end = rows.at(-1);
    if (end === undefined) return;
    after = end;
  }
}

/** A checkpoint is smaller than a page, so a page is empty only at the end. */
function readAfter(
  db: Executor,
  { by, after, limit }: { by: CheckpointsBy; after: typeof START; limit: number },
): Promise<CheckpointRow[]> {
  return db
    .select()
    .from(checkpoint)
    .where(
      and(
        isBy(by),
        gt(checkpoint.position, after.position),
        lte(checkpoint.totalBytes, after.totalBytes + LIMITS.checkpointPageBytes),
      ),
    )
    .orderBy(asc(checkpoint.position))
    .limit(limit);
}

async function placeOf(db: Executor, by: CheckpointsBy, id: string): Promise<typeof START> {
  const [row] = await db
    .select({ position: checkpoint.position, totalBytes: checkpoint.totalBytes })
    .from(checkpoint)
    .where(and(isBy(by), eq(checkpoint.id, id)));
  if (row !== undefined) return row;
  throw invalidField("cursor", "names no checkpoint of this contract; use the nextCursor of a response");
}

export const CheckpointProofSchema = z
  .object({
    checkpointId: z.string(),
    contractId: z.string(),
    leaf: HexViewSchema.openapi({
      description:
        "keccak256 of the canonical JSON (RFC 8785) of the Checkpoint without `id` and `createdAt`",
    }),
    proof: z
      .array(HexViewSchema)
      .openapi({ description: "Sibling hashes from the leaf up; keccak256 of each pair in ascending order" }),
    root: HexViewSchema,
    leafCount: z.number().int(),
    anchoredRoot: HexViewSchema.nullable().openapi({
      description: "`checkpointsRoot` of the escrow's WorkingContractDelivered event",
    }),
    anchored: z.boolean().openapi({ description: "Whether `root` is `anchoredRoot`" }),
  })
  .openapi("CheckpointProof");

export type CheckpointProof = z.infer<typeof CheckpointProofSchema>;

/** The proof against the root over all checkpoints, which a delivery anchors. Throws 404. */
export async function proveCheckpoint(
  { db, checkpointTrees }: Pick<Deps, "db" | "checkpointTrees">,
  { id, checkpointId }: { id: Address; checkpointId: string },
): Promise<CheckpointProof> {
  const { chain } = await loadContract(db, id);
  const by = { contractId: id, worker: chain.worker };
  const [row] = await db
    .select({ leaf: checkpoint.leaf })
    .from(checkpoint)
    .where(and(isBy(by), eq(checkpoint.id, checkpointId)));
  if (row === undefined) {
    throw new AppError("not_found", { message: `The contract has no checkpoint ${checkpointId}.` });
  }
  const tree = await checkpointTrees.of(db, by);
  const root = rootOf(tree);
  const anchoredRoot = chain.checkpointsRoot;
  return {
    checkpointId,
    contractId: id,
    leaf: row.leaf,
    proof: proofOf(tree, row.leaf),
    root,
    leafCount: tree.leafCount,
    anchoredRoot,
    anchored: anchoredRoot === root,
  };
}
