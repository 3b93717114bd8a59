/** The agent's leave for the Relay to act for it, brought on chain the first time that it is needed. */

import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, gt, isNotNull } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import type { Transaction } from "../../db/client.js";
import { challenge } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { settlementPending } from "../../payments/answer.js";
import { refuseFailing } from "../../payments/refuse-failing.js";
import { delegateOperation } from "../../relayer/operations.js";
import { enqueue, type OperationRow } from "../../relayer/outbox.js";
import { readGrant } from "./delegation-grant.js";
import { lockAddress } from "./prove-address.js";

/**
 * Returns once the chain knows that `agent` delegated to the Relay. The proof is the newest signature by which it was
 * issued a key after its last revocation. Throws 403 `forbidden` where there is none.
 */
export async function ensureDelegation(deps: Deps, agent: Address): Promise<void> {
  const { issuedAt, revokedAt } = await readGrant(deps, agent);
  if (issuedAt > revokedAt) return;
  await refuseFailing(deps.db, agent);

  const operation = await deps.db.transaction(async (tx) => {
    // A revocation of all keys takes the same lock: it either forgets the proof first, or finds our operation.
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
  const act = { agent, issuedAt, expiresAt, nonce: proof.nonce as Hex, signature: proof.signature as Hex };
  return (await enqueue(tx, delegateOperation({ deployment, ...act }))).operation;
}

function notDelegated(): AppError {
  return new AppError("forbidden", {
    message:
      "The operator may not act for your address: its delegation was revoked, or never given. Issue a new API key (challenge, sign, redeem); its signature gives the delegation again. You can also call the escrow yourself.",
  });
}

function delegationFailed(reason: string | null): AppError {
  return new AppError("unavailable", {
    message: "Your delegation could not be brought on chain right now; repeat the call.",
    retryable: true,
    retryAfterSeconds: 2,
    details: { reason },
  });
}
