/** The log's writes: gapless positions, each source once, and a correction that names each undone event. */

import { TIMEOUT_TYPES } from "@working-contracts/protocol/events";
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, inArray, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../db/client.js";
import { event, eventLog } from "../db/schema.js";
import { CONTRADICTS_TIMEOUT } from "./deadlines.js";
import type { EventDraft } from "./draft.js";
import type { EventRow } from "./read.js";

/** Postgres channel; payload: the log's newest position. */
export const EVENTS_APPENDED = "events_appended";

/** The log during one round of its writer. */
export interface Log {
  state: typeof eventLog.$inferSelect;
  tx: Transaction;
}

type NewEvent = typeof event.$inferInsert;

/** Appends drafts in order. Skips those whose source is in the log, and reverts time-outs that they disprove. */
export async function append(log: Log, drafts: readonly EventDraft[]): Promise<void> {
  if (drafts.length === 0) return;
  const known = await log.tx
    .select({ source: event.source })
    .from(event)
    .where(
      and(
        inArray(
          event.source,
          drafts.map(({ source }) => source),
        ),
        isNull(event.revertedBy),
      ),
    );
  const seen = new Set(known.map(({ source }) => source));
  const timeouts = await liveTimeouts(log, drafts);
  const rows: NewEvent[] = [];
  for (const draft of drafts) {
    if (seen.has(draft.source)) continue;
    seen.add(draft.source);
    const disproved = CONTRADICTS_TIMEOUT.has(draft.type) ? timeouts.get(draft.contractId) : undefined;
    if (disproved !== undefined) {
      await revert(log, disproved, draft.occurredAt);
      timeouts.delete(draft.contractId);
    }
    rows.push(place(log, draft));
  }
  if (rows.length > 0) await log.tx.insert(event).values(rows);
}

/** Assigns positions to staged events in the order in which they were written. Returns how many. */
export async function appendStaged({ state, tx }: Log, limit: number): Promise<number> {
  const staged = await tx
    .select({ id: event.id })
    .from(event)
    .where(isNull(event.position))
    .orderBy(asc(event.id))
    .limit(limit);
  if (staged.length === 0) return 0;
  const first = state.lastPosition + 1n;
  const ids = staged.map(({ id }) => id.toString());
  await tx.execute(sql`
    update app.event set position = ${first.toString()}::bigint + numbered.ordinal - 1
    from unnest(${`{${ids.join(",")}}`}::bigint[]) with ordinality as numbered (id, ordinal)
    where event.id = numbered.id`);
  state.lastPosition += BigInt(staged.length);
  return staged.length;
}

/**
 * Reverts events, newest first: for each, it appends an `event.reverted` that names it. It also reverts later time-outs
 * and deadline notices of the same contracts, because they followed from the reverted events. Returns the contracts.
 */
export async function revertChainEvents(
  log: Log,
  undone: readonly EventRow[],
  occurredAt: Date,
): Promise<Address[]> {
  if (undone.length === 0) return [];
  const contractIds = [...new Set(undone.map(({ contractId }) => contractId))];
  const [oldest = 0n] = undone.map(({ position }) => position ?? 0n).sort((a, b) => Number(a - b));
  const followers = await log.tx
    .select()
    .from(event)
    .where(
      and(
        inArray(event.contractId, contractIds),
        inArray(event.type, [...TIMEOUT_TYPES, "deadline.approaching"]),
        gt(event.position, oldest),
        isNull(event.revertedBy),
      ),
    );
  const all = [...undone, ...followers].sort((a, b) => Number((b.position ?? 0n) - (a.position ?? 0n)));
  await revert(log, all, occurredAt);
  return contractIds as Address[];
}

/** Stores the log's state and notifies its readers. */
export async function closeLog({ state, tx }: Log): Promise<void> {
  await tx.update(eventLog).set(state).where(eq(eventLog.id, 1));
  await tx.execute(sql`select pg_notify(${EVENTS_APPENDED}, ${state.lastPosition.toString()})`);
}

async function revert(log: Log, rows: readonly EventRow[], occurredAt: Date): Promise<void> {
  for (const { id, position, type, contractId, agents, visibleTo } of rows) {
    const correction = place(log, {
      type: "event.reverted",
      contractId: contractId as Address,
      agents: agents as Address[],
      ...(visibleTo === null ? {} : { visibleTo: visibleTo as Address[] }),
      data: { eventId: String(position), type },
      occurredAt,
      source: `revert:${position}`,
    });
    await log.tx.insert(event).values(correction);
    await log.tx.update(event).set({ revertedBy: correction.position }).where(eq(event.id, id));
  }
}

/** The row of the log's next event. */
function place({ state }: Log, { chain, visibleTo, ...draft }: EventDraft): NewEvent {
  state.lastPosition += 1n;
  return { ...draft, ...chain, visibleTo: visibleTo ?? null, position: state.lastPosition };
}

/** Time-outs in the log that the drafts disprove, by contract. */
async function liveTimeouts({ tx }: Log, drafts: readonly EventDraft[]): Promise<Map<string, EventRow[]>> {
  const ids = drafts
    .filter(({ type }) => CONTRADICTS_TIMEOUT.has(type))
    .map(({ contractId }) => contractId as string);
  if (ids.length === 0) return new Map();
  const rows = await tx
    .select()
    .from(event)
    .where(
      and(
        inArray(event.contractId, [...new Set(ids)]),
        inArray(event.type, [...TIMEOUT_TYPES]),
        isNull(event.revertedBy),
      ),
    );
  const byContract = new Map<string, EventRow[]>();
  for (const row of rows) byContract.set(row.contractId, [...(byContract.get(row.contractId) ?? []), row]);
  return byContract;
}
