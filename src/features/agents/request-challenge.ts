import { randomBytes, randomUUID } from "node:crypto";
import { challengeText } from "@working-contracts/protocol/challenge-text";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import { challenge } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { awaitRevocation, readGrant } from "./delegation-grant.js";

/** More than one per new challenge, so a backlog shrinks. */
const PURGED_AT_ONCE = 20;

/**
 * Issues a challenge for `address`, dated strictly after its last revocation on chain: AgentDelegation refuses an
 * older one. Also deletes some expired challenges, which bounds their number.
 */
export async function requestChallenge(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment" | "outbox" | "config">,
  address: Address,
): Promise<{ challengeId: string; message: string }> {
  await awaitRevocation(deps, address);
  const { revokedAt } = await readGrant(deps, address);
  const now = deps.clock.now();
  const issuedAt = Math.max(now, revokedAt + 1);
  const expiresAt = issuedAt + LIMITS.challengeValidity;
  const nonce: Hex = `0x${randomBytes(32).toString("hex")}`;
  const { domain, relay: operator, factory, chainId } = deps.deployment;
  const message = challengeText({
    domain,
    agent: address,
    operator,
    factory,
    chainId,
    nonce,
    issuedAt,
    expiresAt,
  });

  await purgeExpired(deps.db, now);
  const challengeId = randomUUID();
  await deps.db.insert(challenge).values({ id: challengeId, address, nonce, message, issuedAt, expiresAt });
  return { challengeId, message };
}

/** Deletes expired challenges but keeps those that issued a key: their signature proves the delegation. */
async function purgeExpired(db: Deps["db"], now: number): Promise<void> {
  await db.execute(sql`
    delete from ${challenge} where id in (
      select id from ${challenge}
      where (redeemed_at is null or purpose = 'revoke') and expires_at <= ${now}
      order by expires_at limit ${PURGED_AT_ONCE}
      for update skip locked)`);
}
