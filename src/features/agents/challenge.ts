/** Challenges: the text that an address signs to prove itself, once, within its validity. */
import { randomBytes, randomUUID } from "node:crypto";
import { LIMITS } from "@working-contracts/protocol/limits";
import { challengeText, type Permission } from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq, isNotNull, isNull, lt, max, sql } from "drizzle-orm";
import { hashMessage } from "viem";
import { type SignatureVerdict, verifySignature } from "../../chain/signatures.js";
import type { Executor, Transaction } from "../../db/client.js";
import { challenge } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { awaitRevocation, type DelegationGrant, readGrant } from "./delegation.js";

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

/** Checks a claim without using up the challenge. Throws `invalid_challenge`, or `invalid_signature` after counting it. */
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
  const signed = { nonce: row.nonce, issuedAt, expiresAt, permission: { actions, until } };
  return { challengeId, address, ...signed, signature: verdict.signature, grant };
}

/** Uses up the challenge: of concurrent calls all but one throw `invalid_challenge`. Keeps the signature only for an issued key. */
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

/** `invalid_challenge`, with how to get a new one. */
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

const REFUSALS: Record<Exclude<SignatureVerdict, { ok: true }>["reason"], string> = {
  mismatch:
    "The signature was not made by this address over the challenge's message (EIP-191 personal_sign).",
  refused_by_wallet:
    "The contract at this address does not accept the signature (ERC-1271 isValidSignature).",
  not_deployed:
    "Signatures of wallets that are not deployed yet (ERC-6492) are not accepted: deploy the wallet first, then sign again.",
};

function invalidSignature(reason: keyof typeof REFUSALS, triesLeft: number): AppError {
  return new AppError("invalid_signature", {
    message: REFUSALS[reason],
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
 * Issues a challenge, and deletes some expired ones. Dated after the last revocation and sign-in: AgentDelegation refuses
 * texts from before the former, and keeps the first of two of one second.
 */
export async function requestChallenge(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment" | "outbox" | "config">,
  { address, permission }: { address: Address; permission: Permission },
): Promise<{ challengeId: string; message: string }> {
  await awaitRevocation(deps, address);
  const { revokedAt } = await readGrant(deps, address);
  const now = deps.clock.now();
  const [last] = await deps.db
    .select({ signedInAt: max(challenge.issuedAt) })
    .from(challenge)
    .where(and(eq(challenge.address, address), isNotNull(challenge.signature)));
  const issuedAt = Math.max(now, revokedAt + 1, (last?.signedInAt ?? 0) + 1);
  const nonce: Hex = `0x${randomBytes(32).toString("hex")}`;
  const fields = { ...permission, nonce, issuedAt, expiresAt: issuedAt + LIMITS.challengeValidity };
  const { domain, relay: operator, factory, chainId } = deps.deployment;
  const message = challengeText({ domain, agent: address, operator, factory, chainId, ...fields });

  await purgeExpired(deps.db, now);
  const challengeId = randomUUID();
  await deps.db.insert(challenge).values({ id: challengeId, address, message, ...fields });
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
