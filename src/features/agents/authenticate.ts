import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNull } from "drizzle-orm";
import type { Config } from "../../config.js";
import type { Executor } from "../../db/client.js";
import { apiKey } from "../../db/schema.js";
import { hashKey, isWellFormedKey } from "./api-key.js";

const BEARER = /^Bearer +(\S+) *$/i;

/**
 * The address behind an `Authorization` header; null unless it is an active key of this environment. Reads the
 * database every time, so a revoked key stops working immediately in every process.
 */
export async function authenticate(
  { db, config }: { db: Executor; config: Pick<Config, "environment"> },
  header: string,
): Promise<Address | null> {
  const key = BEARER.exec(header)?.[1];
  if (key === undefined || !isWellFormedKey(key, config.environment)) return null;
  const [row] = await db
    .select({ address: apiKey.address })
    .from(apiKey)
    .where(and(eq(apiKey.hash, hashKey(key)), isNull(apiKey.revokedAt)));
  return (row?.address as Address | undefined) ?? null;
}
