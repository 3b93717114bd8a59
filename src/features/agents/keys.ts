/** Issues, revokes and lists an agent's API keys, for whoever proves the address by challenge and signature. */
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { LIMITS } from "@working-contracts/protocol/limits";
import { challengeText, type Permission } from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, asc, eq, gt, isNotNull, isNull, lt, lte, ne, sql } from "drizzle-orm";
import { hashMessage } from "viem";
import { type SignatureVerdict, verifySignature } from "../../chain/signatures.js";
import { type Executor, NOTIFICATION_LEASE_MS, type Transaction } from "../../db/client.js";
import { apiKey, challenge, webhook } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError, invalidField } from "../../errors.js";
import { pageOf } from "../../http/schemas.js";
import { deriveSecret } from "../../master-key.js";
import { limitsOfReplacement } from "../../relayer/limits.js";
import { delegateOperation, revokeDelegationOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import {
  awaitRevocation,
  type DelegationGrant,
  lockAddress,
  newestDelegationOperation,
  pendingRevocation,
  readGrant,
} from "./delegation.js";
import { createKey } from "./key-owners.js";

export interface AddressClaim {
  address: Address;
  challengeId: string;
  signature: string;
}

export interface AddressProof {
  challengeId: string;
  address: Address;
  nonce: Hex;
  /** Seconds, as in the signed text. */
  issuedAt: number;
  expiresAt: number;
  permission: Permission;
  /** In the form that the chain accepts. */
  signature: Hex;
  /** The agent's delegation at the chain's head. */
  grant: DelegationGrant;
}

/**
 * Checks a claim without using up the challenge: `redeem` does that, in the transaction that needs the proof. Throws
 * `invalid_challenge`, or `invalid_signature` after counting the failed attempt.
 */
export async function proveAddress(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment">,
  { address, challengeId, signature }: AddressClaim,
): Promise<AddressProof> {
  const [row] = await deps.db.select().from(challenge).where(eq(challenge.id, challengeId));
  const usable =
    row !== undefined &&
    row.address === address &&
    row.redeemedAt === null &&
    row.failedAttempts < LIMITS.challengeAttempts &&
    deps.clock.now() < row.expiresAt;
  if (!usable) throw invalidChallenge();

  const [verdict, grant] = await Promise.all([
    verifySignature(deps.publicClient, { address, hash: hashMessage(row.message), signature }),
    readGrant(deps, address),
  ]);
  if (!verdict.ok) throw invalidSignature(verdict.reason, await countBadTry(deps.db, challengeId));
  const { issuedAt, expiresAt, actions, until } = row;
  const signed = { nonce: row.nonce as Hex, issuedAt, expiresAt, permission: { actions, until } };
  return { challengeId, address, ...signed, signature: verdict.signature, grant };
}

/**
 * Uses up the challenge: of concurrent redemptions one passes and the others throw `invalid_challenge`. The signature is
 * kept only for an issued key, whose delegation it proves.
 */
export async function redeem(
  tx: Transaction,
  proof: AddressProof,
  purpose: "issue" | "revoke",
): Promise<void> {
  const redeemed = await tx
    .update(challenge)
    .set({ redeemedAt: sql`now()`, purpose, signature: purpose === "issue" ? proof.signature : null })
    .where(and(eq(challenge.id, proof.challengeId), isOpen))
    .returning({ id: challenge.id });
  if (redeemed.length === 0) throw invalidChallenge();
}

export function invalidChallenge(
  message = "The challenge is unknown, expired, already used, or was issued to another address.",
): AppError {
  return new AppError("invalid_challenge", {
    message,
    hint: "Request a new one with POST /v1/agents/{address}/challenge; it is valid for 5 minutes and for one call.",
  });
}

const isOpen = and(isNull(challenge.redeemedAt), lt(challenge.failedAttempts, LIMITS.challengeAttempts));

/** Remaining attempts; an attempt that is too late to be counted finds the challenge invalid. */
async function countBadTry(db: Executor, challengeId: string): Promise<number> {
  const [row] = await db
    .update(challenge)
    .set({ failedAttempts: sql`${challenge.failedAttempts} + 1` })
    .where(and(eq(challenge.id, challengeId), isOpen))
    .returning({ failedAttempts: challenge.failedAttempts });
  if (row === undefined) throw invalidChallenge();
  return LIMITS.challengeAttempts - row.failedAttempts;
}

const SIGNATURE_FAULTS: Record<Exclude<SignatureVerdict, { ok: true }>["reason"], string> = {
  mismatch:
    "The signature was not made by this address over the challenge's message (EIP-191 personal_sign).",
  refused_by_wallet:
    "The contract at this address does not accept the signature (ERC-1271 isValidSignature).",
  not_deployed:
    "Signatures of wallets that are not deployed yet (ERC-6492) are not accepted: deploy the wallet first, then sign again.",
};

function invalidSignature(reason: keyof typeof SIGNATURE_FAULTS, triesLeft: number): AppError {
  return new AppError("invalid_signature", {
    message: SIGNATURE_FAULTS[reason],
    details: { triesLeft },
    hint:
      triesLeft > 0
        ? "Sign the exact text of `message`, byte for byte, and retry with the same challengeId."
        : "The challenge is used up: request a new one.",
  });
}

/** More than one per new challenge, so a backlog shrinks. */
const PURGED_AT_ONCE = 20;

/**
 * Issues a challenge for `address`, dated strictly after its last revocation on chain: AgentDelegation refuses an
 * older one. Also deletes some expired challenges, which bounds their number.
 */
export async function requestChallenge(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment" | "outbox" | "config">,
  { address, permission }: { address: Address; permission: Permission },
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
    ...permission,
    factory,
    chainId,
    nonce,
    issuedAt,
    expiresAt,
  });

  await purgeExpired(deps.db, now);
  const challengeId = randomUUID();
  const row = { id: challengeId, address, nonce, message, issuedAt, expiresAt, ...permission };
  await deps.db.insert(challenge).values(row);
  return { challengeId, message };
}

/** Deletes expired challenges but keeps those whose signature proves the delegation: the newest that issued a key. */
async function purgeExpired(db: Deps["db"], now: number): Promise<void> {
  await db.execute(sql`
    delete from ${challenge} where id in (
      select id from ${challenge}
      where signature is null and expires_at <= ${now}
      order by expires_at limit ${PURGED_AT_ONCE}
      for update skip locked)`);
}

export interface IssuedKey {
  address: Address;
  /** Plain text; it is stored nowhere. */
  apiKey: string;
  keyId: string;
  label: string | null;
}

/**
 * Redeems a challenge for a new API key. With an idempotency key the same claim gets the same API key for as long as the
 * challenge would be valid: the key is derived from both, because its plain text is not stored. Throws
 * `invalid_challenge` or `invalid_signature`, `unavailable` while a revocation of the address is pending, and
 * `rate_limited` if the sign-in changes what is delegated and is beyond the gas limits.
 */
export async function issueKey(
  deps: Deps,
  {
    label,
    idempotencyKey,
    ...claim
  }: AddressClaim & { label: string | null; idempotencyKey: string | undefined },
): Promise<IssuedKey> {
  const { environment, masterKey } = deps.config;
  const { address, challengeId, signature } = claim;
  if (idempotencyKey === undefined) return storeKey(deps, { claim, label, key: createKey(environment) });

  const secret = deriveSecret(masterKey, "api key", [address, challengeId, signature, idempotencyKey]);
  const key = createKey(environment, secret);
  try {
    return await storeKey(deps, { claim, label, key });
  } catch (error) {
    const isUsed = error instanceof AppError && error.code === "invalid_challenge";
    const first = isUsed ? await findIssued(deps, { challengeId, hash: key.hash }) : null;
    if (first === null) throw error;
    return { ...first, apiKey: key.apiKey };
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

  if (await isReplacing(deps.db, proof)) await limitsOfReplacement(deps, address);

  const keyId = randomUUID();
  await deps.db.transaction(async (tx) => {
    await lockAddress(tx, address);
    if ((await pendingRevocation(tx, address)) !== null) throw revocationPending();
    await redeem(tx, proof, "issue");
    await forgetOlderSignatures(tx, proof);
    await tx.insert(apiKey).values({ id: keyId, address, hash: key.hash, label });
    await replaceDelegation(tx, deps, proof);
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
  return row === undefined ? null : { ...row, address: row.address as Address };
}

function revocationPending(): AppError {
  return new AppError("unavailable", {
    message:
      "A revocation of this address is pending. Wait until it is on chain, then request a new challenge.",
    retryAfterSeconds: 5,
  });
}

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
    const isActive = and(eq(apiKey.address, address), isNull(apiKey.revokedAt));
    if ((await tx.$count(apiKey, isActive)) === 0) await endDelegation(tx, deps, proof);
    return revoked.length;
  });
  // From then on no process accepts the keys (key-owners.ts).
  if (revokedCount > 0) await delay(NOTIFICATION_LEASE_MS);
  return { address, revokedCount };
}

/** The newest sign-in counts alone: an older one that allows more could still be registered by whoever stole it. */
async function forgetOlderSignatures(
  tx: Transaction,
  { address, challengeId, issuedAt }: AddressProof,
): Promise<void> {
  await tx
    .update(challenge)
    .set({ signature: null })
    .where(
      and(
        eq(challenge.address, address),
        eq(challenge.purpose, "issue"),
        isNotNull(challenge.signature),
        // Of two in one second, the one redeemed last.
        lte(challenge.issuedAt, issuedAt),
        ne(challenge.id, challengeId),
      ),
    );
}

/** Whether a sign-in allows anything else than what is delegated already. */
async function isReplacing(db: Executor, proof: AddressProof): Promise<boolean> {
  const { grant, permission } = proof;
  const isSame = permission.actions === grant.actions && permission.until === grant.until;
  return !isSame && (await isDelegated(db, proof));
}

/** Registers a sign-in that replaces what is delegated: the newest counts alone. */
async function replaceDelegation(
  tx: Transaction,
  { deployment, config: { gasLimits } }: Deps,
  proof: AddressProof,
): Promise<void> {
  if (!(await isReplacing(tx, proof))) return;
  const delegation = { deployment, agent: proof.address, ...proof, ...proof.permission };
  await enqueue(tx, { ...delegateOperation(delegation), gasLimits });
}

async function endDelegation(tx: Transaction, { deployment }: Deps, proof: AddressProof): Promise<void> {
  const { address, challengeId } = proof;
  await tx
    .update(challenge)
    .set({ signature: null })
    .where(and(eq(challenge.address, address), eq(challenge.purpose, "issue")));
  await tx
    .update(webhook)
    .set({ disabledAt: sql`now()`, disabledReason: "all API keys were revoked", claimedUntil: null })
    .where(and(eq(webhook.owner, address), isNull(webhook.disabledAt)));
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

/** Keys of a response without `limit`. */
const MAX_LISTED = 1_000;

/**
 * Active and revoked keys of `address`, oldest first: a page, after the key named by `cursor` if there is one. Throws
 * `invalid_request` if the cursor names none of them.
 */
export async function listKeys(
  db: Executor,
  {
    address,
    limit = MAX_LISTED,
    cursor,
  }: { address: Address; limit?: number | undefined; cursor?: string | undefined },
) {
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
  const keys = rows.map(({ id, label, createdAt, revokedAt }) => ({
    id,
    label,
    createdAt: createdAt.toISOString(),
    revokedAt: revokedAt?.toISOString() ?? null,
  }));
  return pageOf(keys, limit);
}
