/** GET /v1/contracts/{id}/keys/releases: the log of released keys, for the parties. */

import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, lt } from "drizzle-orm";
import { keyRelease } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { loadContractForAction } from "../contracts/load-for-action.js";
import type { ReleaseRole } from "./release-keys.js";
import type { ReferenceField } from "./vault.js";

export interface KeyReleaseView {
  id: string;
  field: ReferenceField;
  releasedTo: Address;
  role: ReleaseRole;
  releasedAt: string;
}

/** A page of releases, newest first. Throws 404, and 403 for everyone except client and worker. */
export async function listReleases(
  { db }: Pick<Deps, "db">,
  { id, caller, limit, before }: { id: Address; caller: Address; limit: number; before?: bigint | undefined },
): Promise<{ releases: KeyReleaseView[]; nextCursor: string | null }> {
  const { chain } = await loadContractForAction(db, id);
  if (caller !== chain.client && caller !== chain.worker) {
    throw new AppError("forbidden", { message: "Only the contract's client and worker may read this." });
  }
  const rows = await db
    .select()
    .from(keyRelease)
    .where(and(eq(keyRelease.contractId, id), before === undefined ? undefined : lt(keyRelease.id, before)))
    .orderBy(desc(keyRelease.id))
    .limit(limit + 1);
  const page = rows.slice(0, limit);
  return {
    releases: page.map((row) => ({
      id: row.id.toString(),
      field: row.field as ReferenceField,
      releasedTo: row.releasedTo as Address,
      role: row.role as ReleaseRole,
      releasedAt: row.releasedAt.toISOString(),
    })),
    nextCursor: page.length < rows.length ? (page.at(-1)?.id.toString() ?? null) : null,
  };
}
