/** An agent's delegation to our Relay: on chain, pending in the outbox, and registered when it is first needed. */
import { delegationAbi } from "@working-contracts/protocol/abi";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, gt, isNotNull, sql } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import type { Executor, Transaction } from "../../db/client.js";
import { challenge, operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { settlementPending } from "../../payments/operation-outcome.js";
import { assertDelegable } from "../../payments/relaying-limits.js";
import { delegateOperation } from "../../relayer/operations.js";
import { enqueue, type OperationRow } from "../../relayer/outbox.js";

/**
 * Returns once the delegation of `agent` to the Relay is on chain. Its proof is the newest signature that issued the agent
 * a key after its last revocation. Throws 403 `forbidden` if there is none.
 */
export async function ensureDelegation(deps: Deps, agent: Address): Promise<void> {
  const { issuedAt, revokedAt } = await readGrant(deps, agent);
  if (issuedAt > revokedAt) return;
  await assertDelegable(deps, agent);

  const operation = await deps.db.transaction(async (tx) => {
    // A revocation of all keys takes the same lock: it either deletes the proof first, or finds our operation.
    await lockAddress(tx, agent);
    return storeDelegation(tx, deps, { agent, revokedAt });
  });
  const done = await deps.outbox.waitFor(operation.id, { timeoutMs: deps.config.settlementWaitMs });
  if (done === null) throw settlementPending();
  if (done.state !== "rejected") return;
  throw meaningOf(done.reason ?? "") === null ? delegationFailed(done.reason) : notDelegated();
}

async function storeDelegation(
  tx: Transaction,
  { deployment }: Deps,
  { agent, revokedAt }: { agent: Address; revokedAt: number },
): Promise<OperationRow> {
  const [proof] = await tx
    .select()
    .from(challenge)
    .where(
      and(
        eq(challenge.address, agent),
        eq(challenge.purpose, "issue"),
        isNotNull(challenge.signature),
        gt(challenge.issuedAt, revokedAt),
      ),
    )
    .orderBy(desc(challenge.issuedAt))
    .limit(1);
  if (proof === undefined) throw notDelegated();
  const { issuedAt, expiresAt } = proof;
  const signed = { agent, issuedAt, expiresAt, nonce: proof.nonce as Hex, signature: proof.signature as Hex };
  return (await enqueue(tx, delegateOperation({ deployment, ...signed }))).operation;
}

function notDelegated(): AppError {
  return new AppError("forbidden", {
    message:
      "Your address has no delegation to the operator: it was revoked or never given. Issue a new API key (challenge, sign, redeem), whose signature delegates again, or call the escrow yourself.",
  });
}

function delegationFailed(reason: string | null): AppError {
  return new AppError("unavailable", {
    message: "Your delegation could not be registered on chain right now; retry the request.",
    retryable: true,
    retryAfterSeconds: 2,
    details: { reason },
  });
}

/** Seconds on the chain's clock; 0 for never. */
export interface DelegationGrant {
  issuedAt: number;
  revokedAt: number;
}

/** Time that a sign-in waits for a pending revocation. */
const REVOCATION_WAIT_MS = 5_000;

/** The newest grant and revocation of `agent` at the chain's head. */
export async function readGrant(
  { publicClient, deployment }: Pick<Deps, "publicClient" | "deployment">,
  agent: Address,
): Promise<DelegationGrant> {
  const [issuedAt, revokedAt] = await publicClient.readContract({
    address: deployment.delegation,
    abi: delegationAbi,
    functionName: "grants",
    args: [agent, deployment.relay],
  });
  return { issuedAt, revokedAt };
}

/** The newest delegation or revocation of `agent` in the outbox that was not rejected, pending or not. */
export async function newestDelegationOperation(
  db: Executor,
  agent: Address,
): Promise<{ id: bigint; kind: string; isPending: boolean } | null> {
  const [row] = await db
    .select({ id: operation.id, kind: operation.kind, state: operation.state })
    .from(operation)
    // Literals, as in the partial index, so that the planner can match it.
    .where(sql`${operation.caller} = ${agent}
      and ${operation.kind} in ('delegate', 'revoke-delegation') and ${operation.state} <> 'rejected'`)
    .orderBy(desc(operation.id))
    .limit(1);
  return row === undefined ? null : { ...row, isPending: ["queued", "sent", "held"].includes(row.state) };
}

/** Id of the pending revocation of `agent`; null if there is none. */
export async function pendingRevocation(db: Executor, agent: Address): Promise<bigint | null> {
  const newest = await newestDelegationOperation(db, agent);
  return newest?.kind === "revoke-delegation" && newest.isPending ? newest.id : null;
}

/**
 * Waits a few seconds for a pending revocation, because it would outdate anything signed before it. Returns without an
 * error after the wait; callers check again.
 */
export async function awaitRevocation(
  { db, outbox, config }: Pick<Deps, "db" | "outbox" | "config">,
  agent: Address,
): Promise<void> {
  const id = await pendingRevocation(db, agent);
  if (id !== null)
    await outbox.waitFor(id, { timeoutMs: Math.min(REVOCATION_WAIT_MS, config.settlementWaitMs) });
}

/** Serialises issuing and revoking for one address until the transaction ends. */
export async function lockAddress(tx: Transaction, address: Address): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`api-keys:${address}`}, 0))`);
}
