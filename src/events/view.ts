import type { EventType } from "@working-contracts/protocol/events";
import type { Hex } from "@working-contracts/protocol/types";
import type { EventRow } from "./filter.js";

/**
 * An event as every reader gets it: by polling, by stream and by webhook. `type`, `timestamp` and `data` follow
 * Standard Webhooks.
 */
export interface EventView {
  /** Its position in the log. The ids of all events are 1, 2, 3 and so on. */
  id: string;
  type: EventType;
  /** When it happened, by the chain's clock. Events are ordered by `id`. */
  timestamp: string;
  contractId: string;
  /** Agents that it concerns. */
  agents: string[];
  data: Record<string, unknown>;
  /** The escrow event that it reports; null if there is none. */
  chain: { blockNumber: number; blockHash: Hex; transactionHash: Hex; logIndex: number } | null;
}

export function toEvent(row: EventRow): EventView {
  return {
    id: String(row.position),
    type: row.type,
    timestamp: row.occurredAt.toISOString(),
    contractId: row.contractId,
    agents: row.agents,
    data: row.data,
    chain:
      row.blockNumber === null
        ? null
        : {
            blockNumber: Number(row.blockNumber),
            blockHash: row.blockHash as Hex,
            transactionHash: row.transactionHash as Hex,
            logIndex: row.logIndex as number,
          },
  };
}
