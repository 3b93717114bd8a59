/** POST /v1/contracts: quotes the deposit, then opens the escrow. */

import { createHash } from "node:crypto";
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
import { parseStoredTerms } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { performPaidCall } from "../../payments/paid-call.js";
import { type PaidAction, type StoredResponse, settlementPending } from "../../payments/relayed-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { type ContractDraft, checkDeadlines, checkDraft, counterpartyOf } from "./draft.js";
import { findLiveCreation, readAttempt, storeAttempt } from "./pending-attempts.js";
import { viewContract } from "./view.js";

export interface CreateCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  draft: ContractDraft;
}

/** The terms that a creation puts on chain; the same for the same bytes of the same caller. */
export interface CreationAttempt {
  id: Address;
  caller: Address;
  bodyHash: string;
  escrowTerms: EscrowTerms;
  /** Canonical terms document. */
  document: string;
  draft: ContractDraft;
  /** Whether it was quoted or paid before. */
  known: boolean;
  /** Whether its texts are stored, and stay until this request has ended. */
  isStored: boolean;
}

/** Quotes, or creates. Refuses with 400, 409 (`duplicate_contract` if the contract exists), 429 and 503. */
export async function createContract(deps: Deps, call: CreateCall): Promise<StoredResponse> {
  return performPaidCall(deps, {
    action: "create",
    path: "/v1/contracts",
    caller: call.caller,
    rawBody: call.rawBody,
    headers: call.headers,
    check: () => checkCreation(deps, call),
    store: (action, before) => storeCreation(deps, action.attempt, before),
    restore: () => restoreTexts(deps, call),
    respond: async ({ escrow }) => ({ data: await viewContract(deps, escrow as Address) }),
  });
}

type CreateAction = PaidAction & { attempt: CreationAttempt };

async function checkCreation(deps: Deps, call: CreateCall): Promise<CreateAction> {
  checkDraft(call.draft, call.caller, deps.config.minimumPrice);
  const attempt = await findAttempt(deps, call);
  const { id, escrowTerms, draft } = attempt;
  const amount = depositsOf(escrowTerms).initiator;

  return {
    kind: "create",
    payTo: id,
    amount,
    description:
      draft.initiator === "worker"
        ? `Worker Stake for the listing "${draft.title}" at ${formatDecimal(escrowTerms.price)}`
        : `Price of the contract "${draft.title}"`,
    lastSecond: escrowTerms.matchDeadline - 1,
    terms: escrowTerms,
    attempt,
    alreadyDone: duplicate(id),
  };
}

/**
 * Readers see the terms from the first quote on. One that is paid without a quote takes a slot as well, unless its money
 * is at the escrow already: a wallet can sign payments that are never taken.
 */
async function storeCreation(
  deps: Deps,
  attempt: CreationAttempt,
  before: "quote" | "operation" | "credit",
): Promise<void> {
  if (before !== "quote") {
    const needsSlot = before === "operation" && !attempt.known;
    if (!attempt.isStored) await storeAttempt(deps, attempt, { needsSlot });
    return;
  }
  if (attempt.known) await requireQuotable(deps, attempt);
  await storeAttempt(deps, attempt, { needsSlot: true });
}

/** The attempt that these bytes were quoted or paid as. */
async function readKnown({ db }: Deps, call: CreateCall) {
  const { caller, draft } = call;
  const bodyHash = hashOf(call.rawBody);
  const [row] = await readAttempt(db, { caller, bodyHash, lifetime: LIMITS.pendingAttemptLifetime });
  if (row === undefined || row.id === null) return { row, attempt: null };
  const attempt: CreationAttempt = {
    id: row.id,
    caller,
    bodyHash,
    escrowTerms: parseStoredTerms(row.escrow_terms),
    document: row.document ?? canonicalTerms(documentOf(call)),
    draft,
    known: true,
    isStored: row.document !== null,
  };
  return { row, attempt };
}

/** Stores dropped texts again, so that readers see the refunded contract. */
async function restoreTexts(deps: Deps, call: CreateCall): Promise<void> {
  const { attempt } = await readKnown(deps, call);
  if (attempt?.isStored === false) await storeAttempt(deps, attempt, { needsSlot: false });
}

/** The attempt for these bytes, stored or new. Throws 409 if it has already led to a contract, or no longer can. */
async function findAttempt(deps: Deps, call: CreateCall): Promise<CreationAttempt> {
  const { row, attempt } = await readKnown(deps, call);
  if (attempt === null) {
    return newAttempt(deps, { ...call, parameters: row?.parameters ?? (await parametersOnChain(deps)) });
  }
  const { id, escrowTerms } = attempt;
  if (row.phase !== null && row.phase !== "none") {
    // A stranger can have opened it after its texts were dropped.
    if (!attempt.isStored) await storeAttempt(deps, attempt, { needsSlot: false });
    throw duplicate(id);
  }
  if (row.is_opened && (row.is_live || !(await wasReorganized(deps, id)))) throw duplicate(id);
  if (deps.clock.now() >= escrowTerms.matchDeadline) {
    throw new AppError("conflict", {
      message: `The matchDeadline, ${isoTime(escrowTerms.matchDeadline)}, has passed. Post the contract with later deadlines.`,
    });
  }
  return attempt;
}

/** Whether a contract that was opened no longer exists: a reorg removed it, and its payment was not applied again. */
async function wasReorganized({ publicClient }: Deps, id: Address): Promise<boolean> {
  const code = await publicClient.getCode({ address: id });
  if (code === undefined) return true;
  return (await publicClient.readContract({ address: id, abi: escrowAbi, functionName: "status" })) === 0;
}

function newAttempt(
  deps: Deps,
  { parameters, ...call }: CreateCall & { parameters: Parameters },
): CreationAttempt {
  const { caller, rawBody, draft } = call;
  checkDeadlines(draft, deps.clock.now());
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
    caller,
    bodyHash: hashOf(rawBody),
    escrowTerms,
    document: canonicalTerms(document),
    draft,
    known: false,
    isStored: false,
  };
}

const documentOf = ({ caller, rawBody, draft }: CreateCall) =>
  termsDocument({ ...draft, salt: creationSalt(caller, rawBody) });

/** Refuses a quote that could not be paid: for a pending creation, or for parameters that are no longer accepted. */
async function requireQuotable(deps: Deps, { id, escrowTerms }: CreationAttempt): Promise<void> {
  if (await findLiveCreation(deps.db, id)) throw settlementPending();
  const validUntil = await deps.publicClient.readContract({
    address: deps.deployment.factory,
    abi: factoryAbi,
    functionName: "parametersValidUntil",
    args: [packParameters(escrowTerms.parameters)],
  });
  if (validUntil > deps.clock.now()) return;
  throw new AppError("conflict", {
    message:
      "The protocol parameters have changed since these bytes were first quoted. Post the contract with another idempotencyKey.",
  });
}

/** From the chain, while the index cannot say. */
async function parametersOnChain({ publicClient, deployment }: Deps): Promise<Parameters> {
  return publicClient.readContract({
    address: deployment.factory,
    abi: factoryAbi,
    functionName: "parameters",
  });
}

function hashOf(rawBody: Uint8Array): string {
  return createHash("sha256").update(rawBody).digest("hex");
}

function duplicate(contractId: Address): AppError {
  return new AppError("duplicate_contract", {
    message: `You have already posted these bytes: they became the contract ${contractId}. To post another contract like it, change the idempotencyKey.`,
    details: { contractId },
  });
}
