import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { apiKey } from "../../db/schema.js";
import { AppError } from "../../errors.js";

export interface KeyMetadata {
  id: string;
  label: string | null;
  createdAt: string;
  revokedAt: string | null;
}

/**
 * Active and revoked keys of `address`, oldest first: all of them, or a page after the key named by `cursor`. Throws
 * `invalid_request` if the cursor names none of them.
 */
export async function listKeys(
  db: Executor,
  { address, limit, cursor }: { address: Address; limit?: number | undefined; cursor?: string | undefined },
): Promise<{ keys: KeyMetadata[]; nextCursor: string | null }> {
  if (cursor !== undefined && (await keyOf(db, address, cursor)) === undefined) {
    const message = "names no key of this address; use the nextCursor of a response";
    throw new AppError("invalid_request", {
      message: `cursor: ${message}.`,
      details: [{ path: "cursor", message }],
    });
  }
  const after =
    cursor === undefined
      ? undefined
      : sql`(${apiKey.createdAt}, ${apiKey.id}) > (select created_at, id from ${apiKey} where id = ${cursor})`;
  const query = db
    .select()
    .from(apiKey)
    .where(and(eq(apiKey.address, address), after))
    .orderBy(asc(apiKey.createdAt), asc(apiKey.id));
  const rows = await (limit === undefined ? query : query.limit(limit + 1));
  const page = limit === undefined ? rows : rows.slice(0, limit);
  return {
    keys: page.map(({ id, label, createdAt, revokedAt }) => ({
      id,
      label,
      createdAt: createdAt.toISOString(),
      revokedAt: revokedAt?.toISOString() ?? null,
    })),
    nextCursor: page.length < rows.length ? (page.at(-1)?.id ?? null) : null,
  };
}

async function keyOf(db: Executor, address: Address, id: string) {
  const [row] = await db
    .select({ id: apiKey.id })
    .from(apiKey)
    .where(and(eq(apiKey.id, id), eq(apiKey.address, address)));
  return row;
}
