/** Actions without a payment: one relayed operation, from the request to the response. */

import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNull, ne, type SQL } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import { operation } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { ActionHeaders } from "../../http/operation.js";
import {
  awaitOutcome,
  type CallIdentity,
  requestHash,
  type StoredResponse,
  type Success,
} from "../../payments/relayed-call.js";
import type { OperationKind } from "../../relayer/operations.js";
import type { OperationRow } from "../../relayer/outbox.js";

export interface UnpaidCall extends CallIdentity {
  /** The escrow acted on; for an action on none, its kind and the once-key of this very action. */
  subject: { escrow: Address } | { kind: OperationKind; onceKey: string };
  headers?: ActionHeaders;
  /** Checks the call, ensures the caller's delegation, and stores the operation. Throws to refuse. */
  store(requestHash: string): Promise<{ operation: OperationRow; existing: boolean }>;
  /** Reads the response after the action was applied on chain. */
  respond(): Promise<Success>;
}

/**
 * Performs an action through the Relay. A retry after a lost response (503, broken connection) continues with the stored
 * operation. A call after the response is checked from scratch, and so refused if the state has changed, unless it has
 * the first one's idempotency key.
 */
export async function performAction(deps: Deps, call: UnpaidCall): Promise<StoredResponse> {
  const key = call.headers?.["idempotency-key"];
  const hash = requestHash(key === undefined ? call : { ...call, action: `${call.action}\n${key}` });
  const first = await findOperation(deps, call, { hash, isAnswered: key !== undefined });
  const stored = first ?? (await storeOperation(deps, call, hash));
  const outcome = await awaitOutcome(deps, stored, call.respond);
  if (outcome.ok) return outcome.response;

  const { id, kind, reason } = outcome.rejected;
  deps.logger.info({ operation: id.toString(), kind, reason }, "operation rejected");
  const meaning = meaningOf(reason ?? "");
  if (meaning !== null) {
    throw new AppError(meaning.code, { message: `${meaning.message}.`, details: { reason } });
  }
  if (reason === "Expired") {
    throw new AppError("conflict", {
      message: "The deadline for this call passed before it reached the chain.",
    });
  }
  throw new AppError("unavailable", {
    message: "The operation was not performed; retry the request.",
    retryable: true,
    retryAfterSeconds: 2,
    details: { reason },
  });
}

async function storeOperation(deps: Deps, call: UnpaidCall, hash: string): Promise<OperationRow> {
  const stored = await call.store(hash);
  if (stored.existing && stored.operation.requestHash !== hash) {
    throw new AppError("conflict", {
      message: "A concurrent request is performing the same action. Check its result before you retry.",
      retryable: true,
    });
  }
  if (!stored.existing) {
    const { id, kind, escrow } = stored.operation;
    deps.logger.info({ operation: id.toString(), kind, escrow }, "operation stored");
  }
  return stored.operation;
}

/**
 * The operation of an identical call: only one without a response yet, or `isAnswered` one with a response, too, however
 * much has changed since.
 */
async function findOperation(
  deps: Deps,
  { subject, caller }: UnpaidCall,
  { hash, isAnswered }: { hash: string; isAnswered: boolean },
): Promise<OperationRow | undefined> {
  const ofSubject = (): SQL | undefined => {
    if ("escrow" in subject) return eq(operation.escrow, subject.escrow);
    const isOwn = and(eq(operation.caller, caller), eq(operation.kind, subject.kind));
    return isAnswered ? isOwn : eq(operation.onceKey, subject.onceKey);
  };
  const [row] = await deps.db
    .select()
    .from(operation)
    .where(
      and(
        ofSubject(),
        eq(operation.requestHash, hash),
        ne(operation.state, "rejected"),
        isAnswered ? undefined : isNull(operation.response),
      ),
    )
    .limit(1);
  return row;
}
