/** The operator's decision on a complaint; there is no HTTP call for it (docs/rules.md 53). */

import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import type { Database, Executor, Transaction } from "../../db/client.js";
import { complaint, event } from "../../db/schema.js";
import { agentsOf, stageEvent } from "../../events/draft.js";
import type { ComplaintStatus } from "./view.js";

export type ComplaintRow = typeof complaint.$inferSelect;

export type Resolution =
  | { ok: true; complaint: ComplaintRow }
  | { ok: false; reason: "unknown" }
  | { ok: false; reason: "already_resolved"; complaint: ComplaintRow };

/** Resolves a pending complaint once; a resolution is public and is never replaced. */
export function resolveComplaint(
  db: Database,
  { id, status, note }: { id: string; status: Exclude<ComplaintStatus, "pending">; note: string | null },
): Promise<Resolution> {
  return db.transaction(async (tx) => {
    const [resolved] = await tx
      .update(complaint)
      // On a local chain whose time was moved, the filing can be ahead of this machine's clock.
      .set({ status, resolutionNote: note, resolvedAt: sql`greatest(now(), ${complaint.filedAt})` })
      .where(and(eq(complaint.id, id), eq(complaint.status, "pending")))
      .returning();
    if (resolved !== undefined) {
      await stageResolved(tx, resolved);
      return { ok: true, complaint: resolved };
    }
    const [existing] = await tx.select().from(complaint).where(eq(complaint.id, id));
    return existing === undefined
      ? { ok: false, reason: "unknown" }
      : { ok: false, reason: "already_resolved", complaint: existing };
  });
}

/** The resolution concerns the same agents as the filing. */
async function stageResolved(tx: Transaction, { id, contractId, filedBy, status, resolvedAt }: ComplaintRow) {
  const [filed] = await tx
    .select({ agents: event.agents })
    .from(event)
    .where(eq(event.source, `complaint:${id}`));
  await stageEvent(tx, {
    type: "complaint.resolved",
    contractId: contractId as Address,
    agents: agentsOf(...(filed?.agents ?? [filedBy])),
    data: { complaintId: id, status },
    occurredAt: resolvedAt ?? new Date(),
    source: `complaint-resolved:${id}`,
  });
}

/** Complaints of all contracts for the operator, oldest first. */
export function findComplaints(
  db: Executor,
  {
    status,
    contractId,
    limit,
  }: { status?: ComplaintStatus | undefined; contractId?: string | undefined; limit: number },
): Promise<ComplaintRow[]> {
  return db
    .select()
    .from(complaint)
    .where(
      and(
        status === undefined ? undefined : eq(complaint.status, status),
        contractId === undefined ? undefined : eq(complaint.contractId, contractId),
      ),
    )
    .orderBy(asc(complaint.filedAt), asc(complaint.id))
    .limit(limit);
}
