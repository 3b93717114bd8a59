/** The events of a Working Contract on chain, in order. */

import type { Address, Hex } from "@working-contracts/protocol/types";
import { asc, eq } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { escrowEvent } from "../../db/onchain.js";

export interface ChainEvent {
  id: string;
  name: string;
  /** Event arguments; integers as decimal strings, hex in lower case. */
  args: Record<string, unknown>;
  /** Seconds since 1970. */
  timestamp: number;
  blockNumber: number;
  transactionHash: Hex;
}

/** Every event of an escrow, oldest first: at most about three for each of 4,095 voters, and a dozen more. */
export async function readTimeline(db: Executor, id: Address): Promise<ChainEvent[]> {
  const rows = await db
    .select()
    .from(escrowEvent)
    .where(eq(escrowEvent.contractId, id))
    .orderBy(asc(escrowEvent.id));
  return rows.map(({ id: eventId, name, args, timestamp, blockNumber, transactionHash }) => ({
    id: eventId,
    name,
    args,
    timestamp: Number(timestamp),
    blockNumber: Number(blockNumber),
    transactionHash,
  }));
}
