import type { EventType } from "@working-contracts/protocol/events";
import type { Hex } from "@working-contracts/protocol/types";
import type { EventRow } from "./filter.js";

/**
 * An event as every reader gets it, by polling, by stream and by webhook alike. `type`, `timestamp` and `data` are
 * those of Standard Webhooks.
 */
export interface EventView {
  /** Its position in the log: ids of all events together are 1, 2, 3 and so on. */
  id: string;
  type: EventType;
  /** When it happened by the chain's clock; the order is that of `id`. */
  timestamp: string;
  contractId: string;
  /** Whom it concerns. */
  agents: string[];
  data: Record<string, unknown>;
  /** The escrow's own event behind it; null where there is none. */
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
