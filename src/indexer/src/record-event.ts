/** Common to all escrow events: a row in the timeline, and new facts on the Working Contract. */
import type { Context, Event, EventNames } from "ponder:registry";
import { escrowEvent, workingContract } from "ponder:schema";

/** Names of the escrow's events, e.g. `VoteSealed`. */
type EscrowEventName = Exclude<
  EventNames extends infer Name ? (Name extends `Escrow:${infer Event}` ? Event : never) : never,
  "setup"
>;

type Row = typeof workingContract.$inferSelect;
type Facts = Partial<typeof workingContract.$inferInsert>;

/**
 * Adds the event to the timeline and applies `facts`, which can depend on the previous row. Returns the new row, or
 * null if the emitter is no escrow of ours: anyone can emit look-alike events, but only the factory's events create
 * rows.
 */
export async function recordEvent<Name extends EscrowEventName>(
  { context, event }: { context: Context; event: Event<`Escrow:${Name}`> },
  name: Name,
  facts: Facts | ((row: Row) => Facts) = {},
): Promise<Row | null> {
  const { block, log, transaction } = event;
  const row = await context.db.find(workingContract, { id: log.address });
  if (row === null) return null;

  await context.db.insert(escrowEvent).values({
    id: event.id,
    contractId: log.address,
    name,
    args: toJson(event.args ?? {}) as Record<string, unknown>,
    timestamp: block.timestamp,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: transaction.hash,
    logIndex: log.logIndex,
  });

  return context.db.update(workingContract, { id: log.address }).set({
    ...(typeof facts === "function" ? facts(row) : facts),
    updatedBlock: block.number,
    updatedBlockHash: block.hash,
  });
}

/** Converts integers to decimal strings and hex to lower case, at any depth. */
function toJson(value: unknown): unknown {
  if (typeof value === "bigint" || typeof value === "number") return value.toString();
  if (typeof value === "string") return value.toLowerCase();
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, toJson(entry)]));
  }
  return value;
}
