/** What goes into the log, and how a change of the service's own tables writes it. */

import type { EventType, ServiceEventType } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { Executor } from "../db/client.js";
import { event } from "../db/schema.js";

export interface EventDraft {
  type: EventType;
  contractId: Address;
  agents: Address[];
  /** Who alone may see it; everybody where absent. */
  visibleTo?: Address[];
  data: Record<string, unknown>;
  occurredAt: Date;
  /** Names what it stems from; the log takes each source once, as long as it is not undone. */
  source: string;
  chain?: ChainPlace;
}

/** Where on the chain an event comes from. */
export interface ChainPlace {
  chainEventId: string;
  blockNumber: bigint;
  blockHash: Hex;
  transactionHash: Hex;
  logIndex: number;
}

/** Parties whom an event concerns; of a Working Contract some are still unknown. */
export function agentsOf(...parties: (string | null | undefined)[]): Address[] {
  return [
    ...new Set(parties.filter((party) => party != null).map((party) => party.toLowerCase() as Address)),
  ];
}

/**
 * Writes an event in the transaction of the change that it tells of, so that there is one if and only if there is the
 * other. The appender puts it into the log within a moment.
 */
export async function stageEvent(
  tx: Executor,
  draft: Omit<EventDraft, "type" | "chain"> & { type: ServiceEventType },
): Promise<void> {
  await tx.insert(event).values({ ...draft, visibleTo: draft.visibleTo ?? null });
}
