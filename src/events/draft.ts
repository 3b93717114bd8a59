/** Drafts of log events, and how a change to the service's own tables stages one. */

import type { EventType, ServiceEventType } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import type { Executor } from "../db/client.js";
import { event } from "../db/schema.js";

export interface EventDraft {
  type: EventType;
  contractId: Address;
  agents: Address[];
  /** The only agents who may see it; absent means everyone. */
  visibleTo?: Address[];
  data: Record<string, unknown>;
  occurredAt: Date;
  /** Identifies the event's cause. The log holds each source once, not counting reverted events. */
  source: string;
  chain?: ChainPlace;
}

/** An event's position on the chain. */
export interface ChainPlace {
  chainEventId: string;
  blockNumber: bigint;
  blockHash: Hex;
  transactionHash: Hex;
  logIndex: number;
}

/** The known parties, in lower case and without duplicates. */
export function agentsOf(...parties: (string | null | undefined)[]): Address[] {
  return [
    ...new Set(parties.filter((party) => party != null).map((party) => party.toLowerCase() as Address)),
  ];
}

/**
 * Writes an event in the transaction of the change that it reports, so that neither exists without the other. The
 * log's writer moves it into the log a moment later.
 */
export async function stageEvent(
  tx: Executor,
  draft: Omit<EventDraft, "type" | "chain"> & { type: ServiceEventType },
): Promise<void> {
  await tx.insert(event).values({ ...draft, visibleTo: draft.visibleTo ?? null });
}
