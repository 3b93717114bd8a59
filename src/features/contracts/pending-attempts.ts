/** Unpaid creation attempts: five at a time per caller, each for 30 minutes after its first quote. */

import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, gt, isNull, ne, notExists, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { workingContract } from "../../db/onchain.js";
import { operation, terms } from "../../db/schema.js";
import { toStoredTerms } from "../../db/stored-terms.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { encryptReference } from "../references/vault.js";
import type { CreationAttempt } from "./create-contract.js";

const LIFETIME_MS = LIMITS.pendingAttemptLifetime * 1000;

/**
 * Takes a slot for an attempt that is about to be quoted, and stores its terms. A repetition within the 30 minutes keeps
 * the slot and its start; later it takes a new one. Throws 429 `too_many_pending_attempts`.
 */
export async function reserveAttempt(deps: Deps, attempt: CreationAttempt): Promise<void> {
  const { id, caller } = attempt;
  await deps.db.transaction(async (tx) => {
    // Two new attempts of one caller must not both find the last slot free.
    await tx.execute(
      sql`select pg_advisory_xact_lock(hashtextextended(${`creation-attempts:${caller}`}, 0))`,
    );
    const since = new Date(Date.now() - LIFETIME_MS);
    const pending = await tx
      .select({ id: terms.id, firstQuotedAt: terms.firstQuotedAt })
      .from(terms)
      .where(
        and(
          eq(terms.caller, caller),
          isNull(terms.openedAt),
          gt(terms.firstQuotedAt, since),
          notExists(
            tx
              .select({ one: sql`1` })
              .from(workingContract)
              .where(and(eq(workingContract.id, terms.id), ne(workingContract.phase, "none"))),
          ),
          notExists(liveCreations(tx, terms.id)),
        ),
      )
      .orderBy(terms.firstQuotedAt)
      .limit(LIMITS.pendingAttempts + 1);
    if (pending.some((other) => other.id === id)) return;
    if (pending.length >= LIMITS.pendingAttempts) throw tooMany(pending[0]?.firstQuotedAt ?? new Date());
    await insertTerms(tx, deps, attempt);
    await tx.update(terms).set({ firstQuotedAt: new Date() }).where(eq(terms.id, id));
  });
}

/** Stores the terms of an attempt that is paid without a quote; it needs no slot. */
export async function storeAttempt(deps: Deps, attempt: CreationAttempt): Promise<void> {
  if (!attempt.known) await deps.db.transaction((tx) => insertTerms(tx, deps, attempt));
}

/** Whether a paid creation of this escrow is pending or done. */
export async function findLiveCreation(db: Executor, id: Address): Promise<boolean> {
  return (await liveCreations(db, sql`${id}`).limit(1)).length > 0;
}

function liveCreations(db: Executor, id: Parameters<typeof eq>[1]) {
  return db
    .select({ id: operation.id })
    .from(operation)
    .where(
      and(sql`${operation.escrow} = ${id}`, eq(operation.kind, "create"), ne(operation.state, "rejected")),
    )
    .$dynamic();
}

async function insertTerms(tx: Executor, deps: Deps, attempt: CreationAttempt): Promise<void> {
  const { id, caller, bodyHash, document, draft, escrowTerms } = attempt;
  const reference = draft.supplementaryMaterials;
  const { masterKey, masterKeysOld } = deps.config;
  const place = { contractId: id, field: "supplementaryMaterials", masterKey, masterKeysOld } as const;
  await tx
    .insert(terms)
    .values({
      id,
      caller,
      bodyHash,
      document,
      termsHash: escrowTerms.termsHash,
      title: draft.title,
      taskDescription: draft.taskDescription,
      acceptanceCriteria: draft.acceptanceCriteria,
      supplementaryMaterials: reference === null ? null : await encryptReference(tx, { ...place, reference }),
      application: draft.application,
      applicationTerms: draft.applicationTerms,
      awardMethod: draft.awardMethod,
      initiator: draft.initiator,
      escrowTerms: toStoredTerms(escrowTerms),
    })
    .onConflictDoNothing();
  const [stored] = await tx
    .select({ id: terms.id })
    .from(terms)
    .where(and(eq(terms.caller, caller), eq(terms.bodyHash, bodyHash)));
  if (stored?.id === id) return;
  // A concurrent request stored the same bytes under other parameters: its terms count.
  throw new AppError("unavailable", {
    message: "A concurrent request stored the same contract first. Retry the identical request.",
    retryable: true,
    retryAfterSeconds: 1,
  });
}

function tooMany(oldest: Date): AppError {
  const freeAt = new Date(oldest.getTime() + LIFETIME_MS);
  return new AppError("too_many_pending_attempts", {
    message: `You have ${LIMITS.pendingAttempts} unpaid creation attempts. Pay one of them, or wait: the oldest one expires at ${freeAt.toISOString()}.`,
    retryable: true,
    retryAfterSeconds: Math.max(1, Math.ceil((freeAt.getTime() - Date.now()) / 1000)),
  });
}
