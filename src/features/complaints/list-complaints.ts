/** GET /v1/contracts/{id}/complaints. */

import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { complaint } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import { type ComplaintView, toComplaint } from "./view.js";

/**
 * Complaints about both parties, oldest first: all of them (at most 20), or a page after the one named by `cursor`.
 * Throws `invalid_request` if the cursor names none of this contract.
 */
export async function listComplaints(
  db: Executor,
  {
    contractId,
    limit,
    cursor,
  }: { contractId: Address; limit?: number | undefined; cursor?: string | undefined },
): Promise<{ complaints: ComplaintView[]; nextCursor: string | null }> {
  if (cursor !== undefined) await requireComplaint(db, contractId, cursor);
  const after =
    cursor === undefined
      ? undefined
      : sql`(${complaint.filedAt}, ${complaint.id}) > (select filed_at, id from ${complaint} where id = ${cursor})`;
  const query = db
    .select()
    .from(complaint)
    .where(and(eq(complaint.contractId, contractId), after))
    .orderBy(asc(complaint.filedAt), asc(complaint.id));
  const rows = await (limit === undefined ? query : query.limit(limit + 1));
  const page = limit === undefined ? rows : rows.slice(0, limit);
  return {
    complaints: page.map(toComplaint),
    nextCursor: page.length < rows.length ? (page.at(-1)?.id ?? null) : null,
  };
}

async function requireComplaint(db: Executor, contractId: string, id: string): Promise<void> {
  const [row] = await db
    .select({ id: complaint.id })
    .from(complaint)
    .where(and(eq(complaint.contractId, contractId), eq(complaint.id, id)));
  if (row !== undefined) return;
  const message = "names no complaint of this contract; use the nextCursor of a response";
  throw new AppError("invalid_request", {
    message: `cursor: ${message}.`,
    details: [{ path: "cursor", message }],
  });
}
