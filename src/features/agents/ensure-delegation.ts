/** Registers the agent's delegation to the Relay on chain, the first time that it is needed. */

import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, gt, isNotNull } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import type { Transaction } from "../../db/client.js";
import { challenge } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { assertNotThrottled } from "../../payments/assert-not-throttled.js";
import { settlementPending } from "../../payments/operation-outcome.js";
import { delegateOperation } from "../../relayer/operations.js";
import { enqueue, type OperationRow } from "../../relayer/outbox.js";
import { readGrant } from "./delegation-grant.js";
import { lockAddress } from "./prove-address.js";

/**
 * Returns once the delegation of `agent` to the Relay is on chain. Its proof is the newest signature that issued the agent
 * a key after its last revocation. Throws 403 `forbidden` if there is none.
 */
export async function ensureDelegation(deps: Deps, agent: Address): Promise<void> {
  const { issuedAt, revokedAt } = await readGrant(deps, agent);
  if (issuedAt > revokedAt) return;
  await assertNotThrottled(deps.db, agent);

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
