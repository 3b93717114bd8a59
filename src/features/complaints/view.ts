import type { complaint } from "../../db/schema.js";

export const COMPLAINT_STATUSES = ["pending", "upheld", "dismissed"] as const;
export type ComplaintStatus = (typeof COMPLAINT_STATUSES)[number];

/** A Complaint as the API shows it (spec.md, "Complaint"). */
export interface ComplaintView {
  id: string;
  contractId: string;
  filedByRole: "client" | "worker";
  evidence: Record<string, unknown>;
  status: ComplaintStatus;
  filedAt: string;
  resolvedAt: string | null;
  resolutionNote: string | null;
}

export function toComplaint(row: typeof complaint.$inferSelect): ComplaintView {
  return {
    id: row.id,
    contractId: row.contractId,
    filedByRole: row.filedByRole as ComplaintView["filedByRole"],
    evidence: row.evidence,
    status: row.status as ComplaintStatus,
    filedAt: row.filedAt.toISOString(),
    resolvedAt: row.resolvedAt?.toISOString() ?? null,
    resolutionNote: row.resolutionNote,
  };
}
