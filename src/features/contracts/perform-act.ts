/** Acts without a payment: checks, the agent's delegation, one relayed operation, the answer. */

import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNull, ne } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import type { Transaction } from "../../db/client.js";
import { operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import {
  type Answer,
  type CallIdentity,
  conclude,
  requestHash,
  type Success,
} from "../../payments/answer.js";
import type { NewOperation } from "../../relayer/operations.js";
import { enqueue, type OperationRow } from "../../relayer/outbox.js";
import { ensureDelegation } from "../agents/ensure-delegation.js";

export interface FreeRequest extends CallIdentity {
  /** The escrow acted on; for an act on none, the once-key that names this very act. */
  subject: { escrow: Address } | { onceKey: string };
  /** Everything that can refuse the call; gives what builds the operation, in the transaction that stores it. */
  prepare(requestHash: string): Promise<(tx: Transaction) => NewOperation | Promise<NewOperation>>;
  respond(mined: OperationRow): Promise<Success>;
}

/**
 * Carries an act out through the Relay. A call whose first answer was lost (503, broken connection) picks its operation
 * up again; a call after the answer is checked afresh, and so refused where the state has moved on.
 */
export async function performAct(deps: Deps, request: FreeRequest): Promise<Answer> {
  const hash = requestHash(request);
  const unanswered = await findUnanswered(deps, request.subject, hash);
  if (unanswered !== undefined) return finish(deps, request, unanswered);

  const build = await request.prepare(hash);
  await ensureDelegation(deps, request.caller);
  const stored = await deps.db.transaction(async (tx) => enqueue(tx, await build(tx)));
  if (stored.existing && stored.operation.requestHash !== hash) {
    throw new AppError("conflict", {
      message:
        "Another call is doing the same thing at this moment. Read what has become of it before you repeat yours.",
      retryable: true,
    });
  }
  if (!stored.existing) {
    const { id, kind, escrow } = stored.operation;
    deps.logger.info({ operation: id.toString(), kind, escrow }, "operation stored");
  }
  return finish(deps, request, stored.operation);
}

async function finish(deps: Deps, request: FreeRequest, stored: OperationRow): Promise<Answer> {
  const conclusion = await conclude(deps, stored, request.respond);
  if (conclusion.ok) return conclusion.answer;

  const { rejected } = conclusion;
  deps.logger.info(
    { operation: rejected.id.toString(), kind: rejected.kind, reason: rejected.reason },
    "operation rejected",
  );
  const meaning = meaningOf(rejected.reason ?? "");
  if (meaning !== null) {
    throw new AppError(meaning.code, {
      message: `${meaning.message}.`,
      details: { reason: rejected.reason },
    });
  }
  if (rejected.reason === "Expired") {
    throw new AppError("conflict", {
      message: "The deadline for this call passed before it reached the chain.",
    });
  }
  throw new AppError("unavailable", {
    message: "The operation was not carried out; repeat the call.",
    retryable: true,
    retryAfterSeconds: 2,
    details: { reason: rejected.reason },
  });
}

async function findUnanswered(
  deps: Deps,
  subject: FreeRequest["subject"],
  hash: string,
): Promise<OperationRow | undefined> {
  const [row] = await deps.db
    .select()
    .from(operation)
    .where(
      and(
        "escrow" in subject ? eq(operation.escrow, subject.escrow) : eq(operation.onceKey, subject.onceKey),
        eq(operation.requestHash, hash),
        ne(operation.state, "rejected"),
        isNull(operation.response),
      ),
    )
    .limit(1);
  return row;
}
