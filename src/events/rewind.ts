/** Distinguishes blocks that a reorg removed from blocks that are not indexed again yet. */

import type { Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, getTableColumns, isNotNull, isNull } from "drizzle-orm";
import { BlockNotFoundError, type PublicClient } from "viem";
import type { Executor } from "../db/client.js";
import { escrowEvent } from "../db/onchain.js";
import { event, eventLog } from "../db/schema.js";

export type LogState = typeof eventLog.$inferSelect;

/** Log events checked per round. If more are undone, the next round continues. */
export const TAIL = 200;

/**
 * Whether the index still has the last scanned event, and therefore all before it: everything after it is then new.
 * Rows disappear in a reorg, and temporarily when the indexer restarts.
 */
export async function indexHolds(db: Executor, { scannedId, scannedHash }: LogState): Promise<boolean> {
  if (scannedId === null || scannedHash === null) return true;
  const [row] = await db
    .select({ id: escrowEvent.id })
    .from(escrowEvent)
    .where(and(eq(escrowEvent.id, scannedId), eq(escrowEvent.blockHash, scannedHash as Hex)));
  return row !== undefined;
}

/** The newest chain events in the log that are not reverted, and whether the index has each. */
export function readChainTail(db: Executor, limit = TAIL) {
  return db
    .select({ ...getTableColumns(event), indexed: isNotNull(escrowEvent.id).mapWith(Boolean) })
    .from(event)
    .leftJoin(
      escrowEvent,
      and(eq(escrowEvent.id, event.chainEventId), eq(escrowEvent.blockHash, event.blockHash)),
    )
    .where(and(isNotNull(event.chainEventId), isNull(event.revertedBy), isNotNull(event.position)))
    .orderBy(desc(event.position))
    .limit(limit);
}

/**
 * Hashes of blocks that are no longer on the node's chain, among those whose events the index has lost. Empty if
 * nothing is lost, or if the index has only not reached those blocks again yet.
 */
export async function findUndoneBlocks(
  db: Executor,
  publicClient: Pick<PublicClient, "getBlock">,
): Promise<Set<Hex>> {
  const undone = new Set<Hex>();
  const [state] = await db.select().from(eventLog).where(eq(eventLog.id, 1));
  if (state === undefined || (await indexHolds(db, state))) return undone;

  const standing = new Set<Hex>();
  const isUndone = async (number: bigint, hash: Hex): Promise<boolean> => {
    if (undone.has(hash) || standing.has(hash)) return undone.has(hash);
    const gone = await hasAnotherBlock(publicClient, number, hash);
    (gone ? undone : standing).add(hash);
    return gone;
  };
  const { scannedBlock, scannedHash } = state;
  if (scannedBlock !== null && !(await isUndone(scannedBlock, scannedHash as Hex))) return undone;
  for (const { blockNumber, blockHash, indexed } of await readChainTail(db)) {
    if (indexed || blockNumber === null || !(await isUndone(blockNumber, blockHash as Hex))) break;
  }
  return undone;
}

/** Whether the node has a different block at that height; false if it has none there yet. */
async function hasAnotherBlock(
  publicClient: Pick<PublicClient, "getBlock">,
  blockNumber: bigint,
  hash: Hex,
): Promise<boolean> {
  try {
    return (await publicClient.getBlock({ blockNumber })).hash !== hash;
  } catch (error) {
    if (error instanceof BlockNotFoundError) return false;
    throw error;
  }
}
