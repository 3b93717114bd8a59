import type { Address } from "@working-contracts/protocol/types";
import { and, count, eq, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../db/client.js";
import { apiKey, challenge, webhook } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { revokeDelegationOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { newestDelegationOperation } from "./delegation-grant.js";
import { type AddressClaim, type AddressProof, lockAddress, proveAddress, redeem } from "./prove-address.js";

/**
 * Redeems a challenge to revoke one key, or every active key of the address. Once no active key is left, the stored
 * delegation signatures are deleted, a delegation on chain is revoked, and the address's webhooks are disabled, because a
 * thief of a key can have added one. Throws `invalid_challenge`, `invalid_signature`, or `key_not_found`, which leaves
 * the challenge unused.
 */
export async function revokeKeys(
  deps: Deps,
  claim: AddressClaim & { keyId: string | undefined },
): Promise<{ address: Address; revokedCount: number }> {
  const { address, keyId } = claim;
  const proof = await proveAddress(deps, claim);
  const revokedCount = await deps.db.transaction(async (tx) => {
    await lockAddress(tx, address);
    await redeem(tx, proof, "revoke");
    const revoked = await tx
      .update(apiKey)
      .set({ revokedAt: sql`now()` })
      .where(
        and(
          eq(apiKey.address, address),
          isNull(apiKey.revokedAt),
          keyId === undefined ? undefined : eq(apiKey.id, keyId),
        ),
      )
      .returning({ id: apiKey.id });
    if (keyId !== undefined && revoked.length === 0) {
      throw new AppError("key_not_found", {
        message: `This address has no active key with the id ${keyId}.`,
      });
    }
    if ((await activeKeys(tx, address)) === 0) await endDelegation(tx, deps, proof);
    return revoked.length;
  });
  return { address, revokedCount };
}

async function activeKeys(tx: Transaction, address: Address): Promise<number> {
  const [row] = await tx
    .select({ count: count() })
    .from(apiKey)
    .where(and(eq(apiKey.address, address), isNull(apiKey.revokedAt)));
  return row?.count ?? 0;
}

async function endDelegation(tx: Transaction, { deployment }: Deps, proof: AddressProof): Promise<void> {
  const { address, challengeId, grant } = proof;
  await tx
    .update(challenge)
    .set({ signature: null })
    .where(and(eq(challenge.address, address), eq(challenge.purpose, "issue")));
  await tx
    .update(webhook)
    .set({ disabledAt: sql`now()`, disabledReason: "all API keys were revoked", claimedUntil: null })
    .where(and(eq(webhook.owner, address), isNull(webhook.disabledAt)));
  // The chain was read before the lock: the outbox shows a delegation that was stored in between.
  const isDelegated =
    grant.issuedAt > grant.revokedAt || (await newestDelegationOperation(tx, address))?.kind === "delegate";
  if (!isDelegated) return;
  // A full queue refuses new work, but must not prevent a revocation.
  await enqueue(tx, revokeDelegationOperation({ deployment, agent: address, challengeId }), {
    maxQueued: Number.MAX_SAFE_INTEGER,
  });
}
