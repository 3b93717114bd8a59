/** POST /v1/contracts: quotes the deposit, then opens the escrow (docs/decisions.md, "Unpaid texts"). */
import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { formatDecimal } from "@working-contracts/protocol/amounts";
import { depositsOf } from "@working-contracts/protocol/ledger";
import { LIMITS } from "@working-contracts/protocol/limits";
import {
  canonicalTerms,
  creationSalt,
  escrowAddress,
  type Parameters,
  packParameters,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import { isoTime } from "@working-contracts/protocol/time";
import { type Address, type EscrowTerms, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import { isIndexWhole, parseStoredTerms, toStoredTerms } from "../../db/onchain.js";
import { forEachCall, prepareShared, sharedCalls } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, unavailable } from "../../errors.js";
import { performPaidCall } from "../../payments/paid-call.js";
import {
  hashOfBody,
  type PaidAction,
  type StoredResponse,
  settlementPending,
} from "../../payments/relayed-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { encryptWithNewKey } from "../references/vault.js";
import {
  type ContractDraft,
  counterpartyOf,
  requirePartiesAndPrice,
  requireTimelyDeadlines,
} from "./schema.js";
import { toWords, wordsOf } from "./text-search.js";
import { viewContract } from "./view.js";

interface CreateCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  draft: ContractDraft;
  /** Counts a new contract towards the IP address's limit; throws `429 rate_limited`. */
  limitQuote(): void;
}

/** The terms that a creation puts on chain; the same for the same bytes of the same caller. */
interface CreationAttempt {
  id: Address;
  escrowTerms: EscrowTerms;
  document: string;
  /** `stored`: they stay until this request has ended. `dropped`: these bytes were quoted or paid before. */
  texts: "new" | "dropped" | "stored";
}

/** Quotes, or creates. Refuses with 400, 409 (`duplicate_contract` if the contract exists), 429 and 503. */
export async function createContract(deps: Deps, call: CreateCall): Promise<StoredResponse> {
  return performPaidCall(deps, {
    name: "create",
    path: "/v1/contracts",
    ...call,
    check: () => checkCreation(deps, call),
    beforeQuote: ({ attempt }) => storeQuoted(deps, call, attempt),
    beforeOperation: ({ attempt }, payment) => storePaid(deps, call, attempt, payment),
    restore: () => restoreTexts(deps, call),
    respond: async ({ escrow }) => {
      if (escrow === null) throw new Error("A creation has no escrow");
      return { data: await viewContract(deps, escrow) };
    },
  });
}

type CreateAction = PaidAction & { attempt: CreationAttempt };

async function checkCreation(deps: Deps, call: CreateCall): Promise<CreateAction> {
  const { draft } = call;
  requirePartiesAndPrice(draft, call.caller, deps.config.minimumPrice);
  const attempt = await findAttempt(deps, call);
  const { id, escrowTerms } = attempt;

  return {
    kind: "create",
    payTo: id,
    amount: depositsOf(escrowTerms).initiator,
    description:
      draft.initiator === "worker"
        ? `Worker Stake for the listing "${draft.title}" at ${formatDecimal(escrowTerms.price)}`
        : `Price of the contract "${draft.title}"`,
    lastSecond: escrowTerms.matchDeadline - 1,
    terms: escrowTerms,
    attempt,
    alreadyDone: () => duplicate(id),
  };
}

/** The caller sees the terms from the first quote on. */
async function storeQuoted(deps: Deps, call: CreateCall, attempt: CreationAttempt): Promise<void> {
  if (attempt.texts !== "new") await requireQuotable(deps, attempt);
  if (attempt.texts !== "stored") call.limitQuote();
  await storeAttempt(deps, call, attempt, { needsSlot: true });
}

/** A payment without a quote also takes a slot, unless its money is at the escrow: a wallet can sign what is never taken. */
async function storePaid(
  deps: Deps,
  call: CreateCall,
  attempt: CreationAttempt,
  { isAtEscrow }: { isAtEscrow: boolean },
): Promise<void> {
  if (attempt.texts === "stored") return;
  if (!isAtEscrow) call.limitQuote();
  await storeAttempt(deps, call, attempt, { needsSlot: !isAtEscrow && attempt.texts === "new" });
}

/** The attempt that these bytes were quoted or paid as. */
async function readKnown({ db }: Deps, call: CreateCall) {
  const known = { caller: call.caller, bodyHash: hashOfBody(call.rawBody) };
  const [row] = await readAttempt(db, { ...known, lifetime: LIMITS.pendingAttemptLifetime });
  if (row === undefined || row.id === null) return { row, attempt: null };
  const attempt: CreationAttempt = {
    id: row.id,
    escrowTerms: parseStoredTerms(row.escrow_terms),
    document: row.document ?? canonicalTerms(documentOf(call)),
    texts: row.document === null ? "dropped" : "stored",
  };
  return { row, attempt };
}

/** Stores dropped texts again, so that readers see the refunded contract. */
async function restoreTexts(deps: Deps, call: CreateCall): Promise<void> {
  const { attempt } = await readKnown(deps, call);
  if (attempt?.texts === "dropped") await storeAttempt(deps, call, attempt, { needsSlot: false });
}

/** The attempt for these bytes, stored or new. Throws 409 if it has already led to a contract, or no longer can. */
async function findAttempt(deps: Deps, call: CreateCall): Promise<CreationAttempt> {
  const { row, attempt } = await readKnown(deps, call);
  if (attempt === null) {
    return newAttempt(deps, call, row?.parameters ?? (await parametersOnChain(deps)));
  }
  const { id, escrowTerms } = attempt;
  if (row.phase !== null && row.phase !== "none") {
    // A stranger can have opened it after its texts were dropped.
    if (attempt.texts === "dropped") await storeAttempt(deps, call, attempt, { needsSlot: false });
    throw duplicate(id);
  }
  if (row.is_opened && (row.is_live || !(await wasReorganized(deps, id)))) throw duplicate(id);
  if (deps.clock.now() >= escrowTerms.matchDeadline) {
    throw conflict(
      `The matchDeadline, ${isoTime(escrowTerms.matchDeadline)}, has passed. Post the contract with later deadlines.`,
    );
  }
  return attempt;
}

/** Whether a contract that was opened no longer exists: a reorg removed it, and its payment was not applied again. */
async function wasReorganized({ publicClient }: Deps, id: Address): Promise<boolean> {
  const code = await publicClient.getCode({ address: id });
  if (code === undefined) return true;
  return (await publicClient.readContract({ address: id, abi: escrowAbi, functionName: "status" })) === 0;
}

function newAttempt(deps: Deps, call: CreateCall, parameters: Parameters): CreationAttempt {
  const { caller, draft } = call;
  requireTimelyDeadlines(draft, deps.clock.now());
  const document = documentOf(call);
  const { matchDeadline, withdrawalDeadline, deliveryDeadline, reviewDeadline } = draft;
  const escrowTerms: EscrowTerms = {
    initiator: caller,
    price: draft.budgetOrPrice,
    counterparty: counterpartyOf(draft) ?? ZERO_ADDRESS,
    criteriaCount: draft.acceptanceCriteria.length,
    workerInitiated: draft.initiator === "worker",
    computedCriteria: draft.application === "usageticket",
    matchDeadline,
    withdrawalDeadline,
    deliveryDeadline,
    reviewDeadline,
    termsHash: termsHash(document),
    parameters,
  };
  const { factory, implementation } = deps.deployment;
  return {
    id: escrowAddress({ factory, implementation, terms: escrowTerms }),
    escrowTerms,
    document: canonicalTerms(document),
    texts: "new",
  };
}

const documentOf = ({ caller, rawBody, draft }: CreateCall) =>
  termsDocument({ ...draft, salt: creationSalt(caller, rawBody) });

/** Refuses a quote that could not be paid: for a pending creation, or for parameters that are no longer accepted. */
async function requireQuotable(deps: Deps, { id, escrowTerms }: CreationAttempt): Promise<void> {
  const { rows } = await deps.db.execute<{ live: boolean }>(sql`select ${isCreationLive(id)} as live`);
  if (rows[0]?.live === true) throw settlementPending();
  const validUntil = await deps.publicClient.readContract({
    address: deps.deployment.factory,
    abi: factoryAbi,
    functionName: "parametersValidUntil",
    args: [packParameters(escrowTerms.parameters)],
  });
  if (validUntil > deps.clock.now()) return;
  throw conflict(
    "The protocol parameters have changed since this request body was first quoted. Post the contract with another idempotencyKey.",
  );
}

/** From the chain, while the index cannot say. */
async function parametersOnChain({ publicClient, deployment }: Deps): Promise<Parameters> {
  return publicClient.readContract({
    address: deployment.factory,
    abi: factoryAbi,
    functionName: "parameters",
  });
}

function duplicate(contractId: Address): AppError {
  return new AppError("duplicate_contract", {
    message: `You have already posted this request body: it created the contract ${contractId}. To post another contract like it, change the idempotencyKey.`,
    details: { contractId },
  });
}

/** SQL: whether a paid creation of the escrow is pending or done. */
const isCreationLive = (escrow: unknown) => sql`exists (
  select 1 from app.operation creation
  where creation.escrow = ${escrow} and creation.kind = 'create' and creation.state <> 'rejected')`;

/** The caller's attempt with these bytes, and the parameters of a new one; null unless the index is whole. */
const readAttempt = prepareShared<{
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
  forEachCall(
    { caller: "text", bodyHash: "text", lifetime: "int" },
    sql`
    select coalesce(t.id, e.id) as id, coalesce(t.escrow_terms, e.escrow_terms) as escrow_terms,
      case when t.opened_at is not null or t.first_quoted_at > now() - make_interval(secs => call.lifetime)
        then t.document end as document,
      t.opened_at is not null as is_opened, c.phase, ${isCreationLive(sql`coalesce(t.id, e.id)`)} as is_live, p.parameters
    from (select 1) always
    left join app.terms t on t.caller = call.caller and t.body_hash = call."bodyHash"
    left join app.expired_attempt e on e.caller = call.caller and e.body_hash = call."bodyHash"
    left join onchain.working_contract c on c.id = coalesce(t.id, e.id)
    left join lateral (
      select parameters from onchain.parameter_set where ${isIndexWhole} order by block_number desc, id desc limit 1
    ) p on true`,
  ),
);

/**
 * Repeats an attempt that is stored under other parameters by a concurrent request: no row with `stored` is returned.
 * All such statements lock their callers in alphabetical order, and so cannot wait for each other in a circle.
 */
const storing = prepareShared<{
  is_known: boolean;
  is_full: boolean;
  /** Unix time, and age in seconds, of the first quote of the oldest. */
  oldest: number | null;
  age: number | null;
  stored: string | null;
}>(
  "creation_attempt_stored",
  sql`
    with call as materialized (select * from ${sharedCalls({
      id: "text",
      caller: "text",
      bodyHash: "text",
      document: "text",
      title: "text",
      taskDescription: "text",
      words: "text[]",
      acceptanceCriteria: "jsonb",
      supplementaryMaterials: "text",
      application: "text",
      applicationTerms: "json",
      awardMethod: "text",
      initiator: "text",
      escrowTerms: "jsonb",
      wrappedKey: "text",
      masterKeyId: "text",
      needsSlot: "boolean",
      lifetime: "int",
      maximum: "int",
    })} order by caller
    ), slots as (
      select call.n, slot.* from call cross join lateral (
        select bool_or(id = call.id) is true as is_known, count(*) >= call.maximum as is_full,
          extract(epoch from min(first_quoted_at))::float8 as oldest,
          extract(epoch from now() - min(first_quoted_at))::float8 as age
        from app.pending_attempts(call.caller, call.lifetime, call.maximum + 1)) slot
    ), stored as (
      insert into app.terms as t (id, caller, body_hash, document, title, task_description, words,
        acceptance_criteria, supplementary_materials, application, application_terms, award_method, initiator,
        escrow_terms)
      select id, caller, "bodyHash", document, title, "taskDescription", ${toWords(sql`words`)},
        "acceptanceCriteria", "supplementaryMaterials", application, "applicationTerms", "awardMethod", initiator,
        "escrowTerms"
      from call join slots using (n) where not is_known and (not is_full or not "needsSlot")
      on conflict (caller, body_hash) do update set first_quoted_at = now() where t.id = excluded.id
      returning id, xmax = 0 as is_new
    ), key as (
      insert into app.reference_key (contract_id, field, wrapped_key, master_key_id)
      select id, 'supplementaryMaterials', "wrappedKey", "masterKeyId"
      from call join stored using (id) where is_new and "wrappedKey" is not null
      on conflict (contract_id, field) do update
        set wrapped_key = excluded.wrapped_key, master_key_id = excluded.master_key_id
    )
    select slots.*, stored.id as stored from slots join call using (n) left join stored using (id)`,
  { apart: "caller" },
);

/**
 * Stores the terms of an attempt. With `needsSlot`, it takes one of the caller's slots, or throws 429
 * `too_many_pending_attempts`; a repetition within the 30 minutes keeps its slot and start, later it takes a new one.
 */
async function storeAttempt(
  { db, config: { masterKey } }: Deps,
  { caller, rawBody, draft }: CreateCall,
  { id, document, escrowTerms }: CreationAttempt,
  { needsSlot }: { needsSlot: boolean },
): Promise<void> {
  const { budgetOrPrice: _, supplementaryMaterials: reference, ...texts } = draft;
  const input = { contractId: id, field: "supplementaryMaterials", masterKey } as const;
  const encrypted = reference === null ? null : await encryptWithNewKey({ ...input, reference });
  const [row] = await storing(db, {
    ...texts,
    id,
    caller,
    bodyHash: hashOfBody(rawBody),
    document,
    words: wordsOf(`${texts.title}\n${texts.taskDescription}`),
    supplementaryMaterials: encrypted?.encrypted ?? null,
    escrowTerms: toStoredTerms(escrowTerms),
    wrappedKey: encrypted?.wrappedKey ?? null,
    masterKeyId: encrypted?.masterKeyId ?? null,
    needsSlot,
    lifetime: LIMITS.pendingAttemptLifetime,
    maximum: LIMITS.pendingAttempts,
  });
  if (row === undefined) throw new Error("A select for each call returned no row");
  if (row.is_known || row.stored !== null) return;
  if (needsSlot && row.is_full) throw tooMany(row.oldest ?? 0, row.age ?? 0);
  // A concurrent request stored the same bytes under other parameters: its terms count.
  throw unavailable("A concurrent request stored the same contract first. Retry the identical request.", 1);
}

function tooMany(oldest: number, age: number): AppError {
  const freeAt = new Date((oldest + LIMITS.pendingAttemptLifetime) * 1000);
  return new AppError("too_many_pending_attempts", {
    message: `You have ${LIMITS.pendingAttempts} unpaid creation attempts. Pay one of them, or wait: the oldest one expires at ${freeAt.toISOString()}.`,
    retryAfterSeconds: Math.max(1, Math.ceil(LIMITS.pendingAttemptLifetime - age)),
  });
}
