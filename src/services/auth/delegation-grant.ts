/** What the chain, and the outbox on its way there, say about an agent's delegation to our Relay. */
import { and, desc, eq, sql } from "drizzle-orm";
import { delegationAbi } from "../../chain/abi.js";
import type { Executor } from "../../db/client.js";
import { operation } from "../../db/schema.js";
import type { Address } from "../../protocol/types.js";
import type { Deps } from "../deps.js";

/** Seconds on the chain's clock; 0 for never. */
export interface DelegationGrant {
  issuedAt: number;
  revokedAt: number;
}

/** How long a sign-in waits for a revocation on its way to the chain. */
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

/** Id of the newest operation of this kind that has not reached the chain yet. */
export async function pendingOperation(
  db: Executor,
  kind: "delegate" | "revoke-delegation",
  agent: Address,
): Promise<bigint | null> {
  const [row] = await db
    .select({ id: operation.id })
    .from(operation)
    .where(
      and(
        eq(operation.caller, agent),
        eq(operation.kind, kind),
        // As in the partial index: literals, so that the planner can match them.
        sql`${operation.kind} in ('delegate', 'revoke-delegation') and ${operation.state} in ('queued', 'sent', 'held')`,
      ),
    )
    .orderBy(desc(operation.id))
    .limit(1);
  return row?.id ?? null;
}

/**
 * Waits a moment for a revocation that is still on its way: what is signed before it has its time on chain would be
 * outdated by it. Past the wait it gives up quietly, for callers that check again.
 */
export async function awaitRevocation(
  { db, outbox, config }: Pick<Deps, "db" | "outbox" | "config">,
  agent: Address,
): Promise<void> {
  const id = await pendingOperation(db, "revoke-delegation", agent);
  if (id !== null)
    await outbox.waitFor(id, { timeoutMs: Math.min(REVOCATION_WAIT_MS, config.settlementWaitMs) });
}
