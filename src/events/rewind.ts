/** Events of blocks that a reorganisation took away: how they are told from blocks not indexed again yet. */

import type { Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, getTableColumns, isNotNull, isNull } from "drizzle-orm";
import { BlockNotFoundError, type PublicClient } from "viem";
import type { Executor } from "../db/client.js";
import { escrowEvent } from "../db/onchain.js";
import { event, eventLog } from "../db/schema.js";

export type LogState = typeof eventLog.$inferSelect;

/** Events of the log that are looked at in one round; the next round goes on where more are undone. */
export const TAIL = 200;

/**
 * Whether the index still has the event that was looked at last, and with it all before: what lies behind it is then
 * new. Rows vanish by a reorganisation, and for a while when the indexer starts again.
 */
export async function indexHolds(db: Executor, { scannedId, scannedHash }: LogState): Promise<boolean> {
  if (scannedId === null || scannedHash === null) return true;
  const [row] = await db
    .select({ id: escrowEvent.id })
    .from(escrowEvent)
    .where(and(eq(escrowEvent.id, scannedId), eq(escrowEvent.blockHash, scannedHash as Hex)));
  return row !== undefined;
}

/** Newest events of the chain in the log that are not undone, and whether the index has them. */
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
 * Hashes of blocks that the node says are no longer part of the chain, among those whose events the index has lost.
 * Empty where nothing is lost, or the index has only not come back to them: then there is nothing to do but wait.
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

/** Whether the node has another block at that height. A node that has none there yet cannot tell. */
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
