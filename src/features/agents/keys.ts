/** Issues, revokes and lists an agent's API keys. */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "@hono/zod-openapi";
import { delegationAbi } from "@working-contracts/protocol/abi";
import type { Permission } from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, isNotNull, isNull, lte, ne, type SQL, sql } from "drizzle-orm";
import { decodeFunctionData } from "viem";
import { ADVISORY_LOCKS, type Executor, NOTIFICATION_LEASE_MS, type Transaction } from "../../db/client.js";
import { apiKey, challenge, webhook } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, invalidField, unavailable } from "../../errors.js";
import { createKey } from "../../http/key-owners.js";
import { unauthorized } from "../../http/middleware.js";
import { type PageQuery, pageOf, shown } from "../../http/schemas.js";
import { deriveSecret } from "../../master-key.js";
import { admitWithinLimits } from "../../relayer/limits.js";
import { delegateOperation, revokeDelegationOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { type AddressClaim, type AddressProof, invalidChallenge, proveAddress, redeem } from "./challenge.js";
import { awaitRevocation, lockAddress, newestDelegationOperation, pendingRevocation } from "./delegation.js";

export interface IssuedKey {
  address: Address;
  /** Plain text; it is stored nowhere. */
  apiKey: string;
  keyId: string;
  label: string | null;
}

/**
 * Redeems a challenge for a new API key. With an idempotency key the same call gets the same API key while the challenge
 * would be valid: it is derived from both, because its plain text is not stored. Throws `invalid_challenge`,
 * `invalid_signature`, `unavailable` while a revocation is pending, and `rate_limited` if the sign-in is narrower
 * than the current delegation and is beyond the gas limits.
 */
export async function issueKey(
  deps: Deps,
  {
    label,
    idempotencyKey,
    ...claim
  }: AddressClaim & { label: string | null; idempotencyKey: string | undefined },
): Promise<IssuedKey> {
  const { environment, masterKey, masterKeysOld } = deps.config;
  const { address, challengeId, signature } = claim;
  if (idempotencyKey === undefined) return storeKey(deps, { claim, label, key: createKey(environment) });

  const call = [address, challengeId, signature, idempotencyKey, label ?? ""];
  const keyOf = (master: Hex) => createKey(environment, deriveSecret(master, "api key", call));
  try {
    return await storeKey(deps, { claim, label, key: keyOf(masterKey) });
  } catch (error) {
    if (!(error instanceof AppError && error.code === "invalid_challenge")) throw error;
    // During a rotation, another process can have derived it from another master key.
    for (const { apiKey, hash } of [masterKey, ...masterKeysOld].map(keyOf)) {
      const first = await findIssued(deps, { challengeId, hash });
      if (first !== null) return { ...first, apiKey };
    }
    throw error;
  }
}

async function storeKey(
  deps: Deps,
  { claim, label, key }: { claim: AddressClaim; label: string | null; key: ReturnType<typeof createKey> },
): Promise<IssuedKey> {
  const { address } = claim;
  await awaitRevocation(deps, address);
  const proof = await proveAddress(deps, claim);
  // Its key could read, but the chain would refuse its delegation: reported now rather than at the first action.
  if (proof.issuedAt <= proof.grant.revokedAt) {
    throw invalidChallenge("The address was revoked on chain after this challenge was issued.");
  }

  if (await isNarrowing(deps.db, proof, deps.clock.now())) await admitWithinLimits(deps, address, "sign-in");

  const keyId = randomUUID();
  await deps.db.transaction(async (tx) => {
    await lockAddress(tx, address);
    if ((await pendingRevocation(tx, address)) !== null) {
      throw unavailable(
        "A revocation of this address is pending. Wait until it is on chain, then request a new challenge.",
        5,
      );
    }
    await redeem(tx, proof, "issue");
    await requireAgreement(tx, proof);
    await forgetOlderSignatures(tx, proof);
    await tx.insert(apiKey).values({ id: keyId, address, hash: key.hash, label });
    // A narrower sign-in is registered at once: only the newest delegation counts.
    if (await isNarrowing(tx, proof, deps.clock.now())) {
      const delegation = { deployment: deps.deployment, agent: address, ...proof, ...proof.permission };
      await enqueue(tx, { ...delegateOperation(delegation), gasPolicy: deps.config.gasPolicy });
    }
  });
  return { address, apiKey: key.apiKey, keyId, label };
}

/** The active key with this hash, while its challenge has not expired. */
async function findIssued(
  { db, clock }: Pick<Deps, "db" | "clock">,
  { challengeId, hash }: { challengeId: string; hash: string },
): Promise<Omit<IssuedKey, "apiKey"> | null> {
  const [row] = await db
    .select({ address: apiKey.address, keyId: apiKey.id, label: apiKey.label })
    .from(apiKey)
    .innerJoin(challenge, eq(challenge.id, challengeId))
    .where(and(eq(apiKey.hash, hash), isNull(apiKey.revokedAt), gt(challenge.expiresAt, clock.now())));
  return row ?? null;
}

/**
 * Redeems a challenge to revoke one key, or every active key of the address. Once none is left, the stored delegation
 * signatures are deleted, a delegation on chain is revoked, and the address's webhooks are disabled, because a thief of a
 * key can have added one. Throws `invalid_challenge`, `invalid_signature`, or `key_not_found`, which redeems nothing.
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
      .where(and(isActiveOf(address), keyId === undefined ? undefined : eq(apiKey.id, keyId)))
      .returning({ id: apiKey.id });
    if (keyId !== undefined && revoked.length === 0) {
      throw new AppError("key_not_found", {
        message: `This address has no active key with the id ${keyId}.`,
      });
    }
    if (!(await hasActiveKey(tx, address))) await endDelegation(tx, deps, proof);
    return revoked.length;
  });
  // From then on no process accepts the keys (key-owners.ts).
  if (revokedCount > 0) await delay(NOTIFICATION_LEASE_MS);
  return { address, revokedCount };
}

/** Throws `invalid_challenge` if the chain could keep a text of the same second instead, which allows something else. */
async function requireAgreement(tx: Transaction, proof: AddressProof): Promise<void> {
  const { actions, until } = proof.permission;
  const isContrary = sql`(${challenge.actions}, ${challenge.until}) <> (${actions}, ${until})`;
  const ofSameSecond = and(isOtherSignIn(proof), eq(challenge.issuedAt, proof.issuedAt), isContrary);
  if ((await tx.$count(challenge, ofSameSecond)) === 0) return;
  throw invalidChallenge("Another challenge of the same second was redeemed, with other actions.");
}

const isActiveOf = (address: Address) => and(eq(apiKey.address, address), isNull(apiKey.revokedAt));

async function hasActiveKey(tx: Transaction, address: Address): Promise<boolean> {
  return (await tx.$count(apiKey, isActiveOf(address))) > 0;
}

/** Waits for pending revocations of the caller's keys, and delays new ones. Throws `unauthorized` if no key is left. */
export async function requireActiveKey(tx: Transaction, caller: Address): Promise<void> {
  await lockAddress(tx, caller);
  if (!(await hasActiveKey(tx, caller))) throw unauthorized();
}

/** The newest sign-in counts alone: an older one that allows more could still be registered by whoever stole it. */
async function forgetOlderSignatures(tx: Transaction, proof: AddressProof): Promise<void> {
  await tx
    .update(challenge)
    .set({ signature: null })
    .where(and(isOtherSignIn(proof), lte(challenge.issuedAt, proof.issuedAt)));
}

/** SQL: another challenge of the address that has issued a key, and whose signature is still kept. */
const isOtherSignIn = ({ address, challengeId }: AddressProof): SQL | undefined =>
  and(
    eq(challenge.address, address),
    eq(challenge.purpose, "issue"),
    isNotNull(challenge.signature),
    ne(challenge.id, challengeId),
  );

/**
 * Whether a sign-in is narrower than the current delegation, or can be narrower than one that is pending, or that the node
 * does not show yet. A wider sign-in is registered when an action first needs it.
 */
async function isNarrowing(
  db: Executor,
  { address, grant, permission }: AddressProof,
  now: number,
): Promise<boolean> {
  const endOf = ({ until }: Permission) => (until === 0 ? Number.POSITIVE_INFINITY : until);
  const isLive = grant.issuedAt > grant.revokedAt && endOf(grant) > now;
  const losesActions = (grant.actions & ~permission.actions) !== 0;
  if (isLive && (losesActions || endOf(permission) < endOf(grant))) return true;
  const newest = await newestDelegationOperation(db, address);
  if (newest?.kind !== "delegate") return false;
  return newest.isPending || issuedAtOf(newest.data as Hex) > grant.issuedAt;
}

/** When the delegation of a registration was issued, in seconds. */
function issuedAtOf(data: Hex): number {
  const call = decodeFunctionData({ abi: delegationAbi, data });
  return call.functionName === "register" ? call.args[0].issuedAt : 0;
}

async function endDelegation(tx: Transaction, { deployment }: Deps, proof: AddressProof): Promise<void> {
  const { address, challengeId } = proof;
  await tx
    .update(challenge)
    .set({ signature: null })
    .where(and(eq(challenge.address, address), eq(challenge.purpose, "issue")));
  const isEnabled = and(eq(webhook.owner, address), isNull(webhook.disabledAt));
  // Matching locks the rows of several webhooks in another order.
  await tx.execute(
    sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching}) from ${webhook} where ${isEnabled} limit 1`,
  );
  await tx
    .update(webhook)
    .set({ disabledAt: sql`now()`, disabledReason: "all API keys were revoked", leasedUntil: null })
    .where(isEnabled);
  // Each challenge could store one more, beyond queue and limits.
  if ((await pendingRevocation(tx, address)) !== null || !(await isDelegated(tx, proof))) return;
  // A full queue refuses new work, but must not prevent a revocation.
  await enqueue(tx, revokeDelegationOperation({ deployment, agent: address, challengeId }), {
    maxQueued: Number.MAX_SAFE_INTEGER,
  });
}

/** The chain was read before the lock: the outbox shows a delegation that was stored in between. */
async function isDelegated(db: Executor, { address, grant }: AddressProof): Promise<boolean> {
  return (
    grant.issuedAt > grant.revokedAt || (await newestDelegationOperation(db, address))?.kind === "delegate"
  );
}

export const KeySchema = z.object({
  id: z.string(),
  label: z.string().nullable(),
  createdAt: z.iso.datetime(),
  revokedAt: z.iso.datetime().nullable(),
});

/** Keys of a response without `limit`. */
const MAX_LISTED = 1_000;

/** A page of the active and revoked keys of `address`, oldest first. Throws 400 if the cursor names none of them. */
export async function listKeys(db: Executor, address: Address, { limit = MAX_LISTED, cursor }: PageQuery) {
  const isOwn = eq(apiKey.address, address);
  if (cursor !== undefined && (await db.$count(apiKey, and(isOwn, eq(apiKey.id, cursor)))) === 0) {
    throw invalidField("cursor", "names no key of this address; use the nextCursor of a response");
  }
  const after =
    cursor === undefined
      ? undefined
      : sql`(${apiKey.createdAt}, ${apiKey.id}) > (select created_at, id from ${apiKey} where id = ${cursor})`;
  const rows = await db
    .select()
    .from(apiKey)
    .where(and(isOwn, after))
    .orderBy(asc(apiKey.createdAt), asc(apiKey.id))
    .limit(limit + 1);
  const keys = rows.map((row) => shown(KeySchema, row));
  return pageOf(keys, limit);
}
