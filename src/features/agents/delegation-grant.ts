/** An agent's delegation to our Relay: on chain, and pending in the outbox. */

import { delegationAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import { desc, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";

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
