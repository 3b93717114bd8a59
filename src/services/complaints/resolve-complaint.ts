/** The operator's decision on a complaint; there is no HTTP call for it (docs/decisions.md 53). */
import { and, asc, eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { complaint } from "../../db/schema.js";
import type { ComplaintStatus } from "./view.js";

export type ComplaintRow = typeof complaint.$inferSelect;

export type Resolution =
  | { ok: true; complaint: ComplaintRow }
  | { ok: false; reason: "unknown" }
  | { ok: false; reason: "already_resolved"; complaint: ComplaintRow };

/** Resolves a pending complaint once; a resolution is public and is never replaced. */
export async function resolveComplaint(
  db: Executor,
  { id, status, note }: { id: string; status: Exclude<ComplaintStatus, "pending">; note: string | null },
): Promise<Resolution> {
  const [resolved] = await db
    .update(complaint)
    // On a local chain whose time was moved, filing can lie ahead of this machine's clock.
    .set({ status, resolutionNote: note, resolvedAt: sql`greatest(now(), ${complaint.filedAt})` })
    .where(and(eq(complaint.id, id), eq(complaint.status, "pending")))
    .returning();
  if (resolved !== undefined) return { ok: true, complaint: resolved };
  const [existing] = await db.select().from(complaint).where(eq(complaint.id, id));
  return existing === undefined
    ? { ok: false, reason: "unknown" }
    : { ok: false, reason: "already_resolved", complaint: existing };
}

/** Complaints of all contracts for the operator's eyes, oldest first. */
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
