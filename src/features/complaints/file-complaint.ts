/** POST /v1/contracts/{id}/complaints: a reputational record about the other party; it never moves funds. */
import { randomUUID } from "node:crypto";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, count, eq, sql } from "drizzle-orm";
import type { Transaction } from "../../db/client.js";
import { complaint } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { agentsOf, stageEvent } from "../../events/draft.js";
import { loadContractForAction } from "../contracts/load-for-action.js";
import { type ContractRow, isoTime } from "../contracts/view.js";
import { type ComplaintView, toComplaint } from "./view.js";

type Role = ComplaintView["filedByRole"];

/**
 * Files a complaint. Throws 404, 403 (not a party), 409 (no counterparty yet, window closed) and 429
 * `too_many_complaints`. The limit is exact even for concurrent calls.
 */
export async function fileComplaint(
  { db, clock }: Pick<Deps, "db" | "clock">,
  { id, caller, evidence }: { id: Address; caller: Address; evidence: Record<string, unknown> },
): Promise<ComplaintView> {
  const row = await loadContractForAction(db, id);
  const role = requireParty(row, caller);
  requireCounterparty(row);

  return db.transaction(async (tx) => {
    await lockComplaints(tx, id);
    const now = clock.now();
    requireOpenWindow(row, now);
    await assertBelowLimit(tx, id, role);
    const [stored] = await tx
      .insert(complaint)
      .values({
        id: randomUUID(),
        contractId: id,
        filedBy: caller,
        filedByRole: role,
        evidence,
        filedAt: await nextFilingTime(tx, id, now),
      })
      .returning();
    const filed = toComplaint(stored as typeof complaint.$inferSelect);
    await stageEvent(tx, {
      type: "complaint.filed",
      contractId: id,
      agents: agentsOf(row.chain.client, row.chain.worker),
      data: { complaintId: filed.id, filedByRole: role },
      occurredAt: new Date(filed.filedAt),
      source: `complaint:${filed.id}`,
    });
    return filed;
  });
}

function requireParty({ chain }: ContractRow, caller: Address): Role {
  if (chain.client === caller) return "client";
  if (chain.worker === caller) return "worker";
  throw new AppError("forbidden", { message: "Only the contract's client or worker may file a complaint." });
}

function requireCounterparty({ chain }: ContractRow): void {
  if (chain.matchedAt !== null) return;
  throw new AppError("conflict", {
    message: "The contract was never matched: there is no counterparty to complain about.",
  });
}

function requireOpenWindow({ chain }: ContractRow, now: number): void {
  const closesAt = Number(chain.reviewDeadline) + LIMITS.complaintWindow;
  if (now < closesAt) return;
  throw new AppError("conflict", {
    message: `The complaint window closed at ${isoTime(closesAt)}, 7 days after the reviewDeadline.`,
    details: { closedAt: isoTime(closesAt) },
  });
}

async function lockComplaints(tx: Transaction, contractId: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`complaints:${contractId}`}, 0))`);
}

async function assertBelowLimit(tx: Transaction, contractId: string, role: Role): Promise<void> {
  const [row] = await tx
    .select({ filed: count() })
    .from(complaint)
    .where(and(eq(complaint.contractId, contractId), eq(complaint.filedByRole, role)));
  if ((row?.filed ?? 0) < LIMITS.complaintsPerRole) return;
  throw new AppError("too_many_complaints", {
    message: `The ${role} of this contract has filed ${LIMITS.complaintsPerRole} complaints, the maximum.`,
    retryable: false,
  });
}

/** The chain's time, but later than every earlier complaint's, so the list is in the order of filing. */
async function nextFilingTime(tx: Transaction, contractId: string, now: number): Promise<Date> {
  const [row] = await tx
    .select({ latest: sql<Date | null>`max(${complaint.filedAt})`.mapWith(complaint.filedAt) })
    .from(complaint)
    .where(eq(complaint.contractId, contractId));
  const latest = row?.latest?.getTime() ?? 0;
  return new Date(Math.max(now * 1000, latest + 1));
}
