/**
 * Creation attempts: their stored terms, and the limit of five unpaid ones per caller, for 30 minutes each. After that
 * the worker drops their texts (keeper/purge.ts), and a repeated request stores them again.
 */

import { LIMITS } from "@working-contracts/protocol/limits";
import type { Parameters } from "@working-contracts/protocol/terms";
import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import { type Executor, prepare } from "../../db/client.js";
import { isIndexWhole, toStoredTerms } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { sealReference } from "../references/vault.js";
import type { CreationAttempt } from "./create-contract.js";
import { toWords, wordsOf } from "./text-search.js";

const value = sql.placeholder;

/** SQL: whether a paid creation of the escrow is pending or done. */
const isCreationLive = (escrow: unknown) => sql`exists (
  select 1 from app.operation creation
  where creation.escrow = ${escrow} and creation.kind = 'create' and creation.state <> 'rejected')`;

/**
 * The caller's attempt with these bytes, if there is one, and the protocol parameters that a new one would have: null
 * unless the index is whole.
 */
export const readAttempt = prepare<{
  id: Address | null;
  /** Null if its texts are dropped, or soon can be. */
  document: string | null;
  escrow_terms: Record<string, unknown>;
  is_opened: boolean;
  /** Null if its escrow was never deployed. */
  phase: string | null;
  is_live: boolean;
  parameters: Parameters | null;
}>(
  "creation_attempt",
  sql`
    select coalesce(t.id, e.id) as id, coalesce(t.escrow_terms, e.escrow_terms) as escrow_terms,
      case when t.opened_at is not null or t.first_quoted_at > now() - make_interval(secs => ${value("lifetime")}::int)
        then t.document end as document,
      t.opened_at is not null as is_opened, c.phase, ${isCreationLive(sql`coalesce(t.id, e.id)`)} as is_live, p.parameters
    from (select 1) always
    left join app.terms t on t.caller = ${value("caller")} and t.body_hash = ${value("bodyHash")}
    left join app.expired_attempt e on e.caller = ${value("caller")} and e.body_hash = ${value("bodyHash")}
    left join onchain.working_contract c on c.id = coalesce(t.id, e.id)
    left join lateral (
      select parameters from onchain.parameter_set where ${isIndexWhole} order by block_number desc, id desc limit 1
    ) p on true`,
);

/** Repeats an attempt that is stored under other parameters by a concurrent request: no row with `stored` is returned. */
const storing = prepare<{
  is_known: boolean;
  is_full: boolean;
  oldest: number | null;
  stored: string | null;
}>(
  "creation_attempt_stored",
  sql`
    with pending as materialized (
      select id, first_quoted_at from app.pending_attempts(
        ${value("caller")}, ${value("lifetime")}::int, ${value("maximum")}::int + 1)
    ), slots as (
      select bool_or(id = ${value("id")}) is true as is_known, count(*) >= ${value("maximum")}::int as is_full,
        extract(epoch from min(first_quoted_at))::float8 as oldest
      from pending
    ), stored as (
      insert into app.terms as t (id, caller, body_hash, document, terms_hash, title, task_description, words,
        acceptance_criteria, supplementary_materials, application, application_terms, award_method, initiator,
        escrow_terms)
      select ${value("id")}, ${value("caller")}, ${value("bodyHash")}, ${value("document")}, ${value("termsHash")},
        ${value("title")}, ${value("taskDescription")}, ${toWords(value("words"))},
        ${value("acceptanceCriteria")}::jsonb, ${value("supplementaryMaterials")}, ${value("application")}, ${value("applicationTerms")}::json,
        ${value("awardMethod")}, ${value("initiator")}, ${value("escrowTerms")}::jsonb
      from slots where not is_known and (not is_full or not ${value("needsSlot")}::boolean)
      on conflict (caller, body_hash) do update set first_quoted_at = now() where t.id = excluded.id
      returning id, xmax = 0 as is_new
    ), key as (
      insert into app.reference_key (contract_id, field, wrapped_key, master_key_id)
      select id, 'supplementaryMaterials', ${value("wrappedKey")}, ${value("masterKeyId")}
      from stored where is_new and ${value("wrappedKey")}::text is not null
      on conflict (contract_id, field) do update
        set wrapped_key = excluded.wrapped_key, master_key_id = excluded.master_key_id
    )
    select slots.*, stored.id as stored from slots left join stored on true`,
);

/**
 * Stores the terms of an attempt. With `needsSlot`, it takes one of the caller's slots, or throws 429
 * `too_many_pending_attempts`; a repetition within the 30 minutes keeps its slot and start, later it takes a new one.
 */
export async function storeAttempt(
  { db, config }: Deps,
  attempt: CreationAttempt,
  { needsSlot }: { needsSlot: boolean },
): Promise<void> {
  const { id, caller, bodyHash, document, draft, escrowTerms } = attempt;
  const reference = draft.supplementaryMaterials;
  const { masterKey } = config;
  const place = { contractId: id, field: "supplementaryMaterials", masterKey } as const;
  const sealed = reference === null ? null : await sealReference({ ...place, reference });
  const [row] = await storing(db, {
    id,
    caller,
    bodyHash,
    document,
    termsHash: escrowTerms.termsHash,
    title: draft.title,
    taskDescription: draft.taskDescription,
    words: wordsOf(`${draft.title}\n${draft.taskDescription}`),
    acceptanceCriteria: JSON.stringify(draft.acceptanceCriteria),
    supplementaryMaterials: sealed?.encrypted ?? null,
    application: draft.application,
    applicationTerms: draft.applicationTerms && JSON.stringify(draft.applicationTerms),
    awardMethod: draft.awardMethod,
    initiator: draft.initiator,
    escrowTerms: JSON.stringify(toStoredTerms(escrowTerms)),
    wrappedKey: sealed?.wrappedKey ?? null,
    masterKeyId: sealed?.masterKeyId ?? null,
    needsSlot,
    lifetime: LIMITS.pendingAttemptLifetime,
    maximum: LIMITS.pendingAttempts,
  });
  if (row === undefined || row.is_known || row.stored !== null) return;
  if (needsSlot && row.is_full) throw tooMany(row.oldest ?? 0);
  // A concurrent request stored the same bytes under other parameters: its terms count.
  throw new AppError("unavailable", {
    message: "A concurrent request stored the same contract first. Retry the identical request.",
    retryable: true,
    retryAfterSeconds: 1,
  });
}

/** Whether a paid creation of this escrow is pending or done. */
export async function findLiveCreation(db: Executor, id: Address): Promise<boolean> {
  const { rows } = await db.execute<{ live: boolean }>(sql`select ${isCreationLive(id)} as live`);
  return rows[0]?.live === true;
}

function tooMany(oldest: number): AppError {
  const freeAt = new Date((oldest + LIMITS.pendingAttemptLifetime) * 1000);
  return new AppError("too_many_pending_attempts", {
    message: `You have ${LIMITS.pendingAttempts} unpaid creation attempts. Pay one of them, or wait: the oldest one expires at ${freeAt.toISOString()}.`,
    retryable: true,
    retryAfterSeconds: Math.max(1, Math.ceil((freeAt.getTime() - Date.now()) / 1000)),
  });
}
