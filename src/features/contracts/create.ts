/** POST /v1/contracts: from the first quote to the opened escrow. */
import { createHash } from "node:crypto";
import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import { workerStake } from "@working-contracts/protocol/ledger";
import {
  canonicalTerms,
  creationSalt,
  escrowAddress,
  packParameters,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import {
  type Address,
  type EscrowTerms,
  type Parameters,
  ZERO_ADDRESS,
} from "@working-contracts/protocol/types";
import { and, eq, isNull } from "drizzle-orm";
import { workingContract } from "../../db/onchain.js";
import { terms } from "../../db/schema.js";
import { parseStoredTerms } from "../../db/stored-terms.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { type Answer, settlementPending } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader } from "../../payments/quote.js";
import { createOperation } from "../../relayer/operations.js";
import { type ContractDraft, checkDeadlines, checkDraft, counterpartyOf } from "./draft.js";
import { findLiveCreation, reserveAttempt, storeAttempt } from "./pending-attempts.js";
import { isoTime, viewContract } from "./view.js";

export interface CreateCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  draft: ContractDraft;
}

/** What a creation attempt will put on chain; the same for the same bytes of the same caller. */
export interface CreationAttempt {
  id: Address;
  caller: Address;
  bodyHash: string;
  escrowTerms: EscrowTerms;
  /** Canonical terms document. */
  document: string;
  draft: ContractDraft;
  /** Whether its terms are stored, that is: it was quoted or paid before. */
  known: boolean;
}

/** Quotes, or creates. Refuses with 400, 409 (`duplicate_contract` where it exists), 429 and 503. */
export async function createContract(deps: Deps, call: CreateCall): Promise<Answer> {
  return performPayment(deps, {
    act: "create",
    caller: call.caller,
    rawBody: call.rawBody,
    headers: call.headers,
    prepare: () => prepare(deps, call),
    respond: async (mined) => {
      const id = mined.escrow as Address;
      await deps.db
        .update(terms)
        .set({ openedAt: new Date() })
        .where(and(eq(terms.id, id), isNull(terms.openedAt)));
      return { data: await viewContract(deps, id) };
    },
  });
}

async function prepare(deps: Deps, call: CreateCall): Promise<PaidAct> {
  checkDraft(call.draft, call.caller, parseDecimal(deps.config.minimumPrice) ?? 0n);
  const attempt = (await findAttempt(deps, call)) ?? (await newAttempt(deps, call));
  const { id, escrowTerms, draft } = attempt;
  const amount = depositOf(escrowTerms);

  return {
    kind: "create",
    escrow: id,
    amount,
    resourceUrl: `${deps.config.baseUrl}/v1/contracts`,
    description:
      draft.initiator === "worker"
        ? `Worker Stake for the listing "${draft.title}" at ${formatDecimal(escrowTerms.price)}`
        : `Price of the contract "${draft.title}"`,
    strayMoney: "credited-by-balance",
    lastSecond: escrowTerms.matchDeadline - 1,
    beforeQuote: async () => {
      if (attempt.known) await requireQuotable(deps, attempt);
      await reserveAttempt(deps, attempt);
    },
    beforeSending: () => storeAttempt(deps, attempt),
    operation: ({ authorization, requestHash, notAfter }) =>
      createOperation({
        deployment: deps.deployment,
        escrow: id,
        caller: call.caller,
        terms: escrowTerms,
        authorization,
        requestHash,
        notAfter,
      }),
    alreadyDone: () => duplicate(id),
  };
}

/** The attempt that these bytes began. Throws 409 where it led to a contract already, or can no longer. */
async function findAttempt(
  deps: Deps,
  { caller, rawBody, draft }: CreateCall,
): Promise<CreationAttempt | null> {
  const bodyHash = hashOf(rawBody);
  const [row] = await deps.db
    .select({ terms, phase: workingContract.phase })
    .from(terms)
    .leftJoin(workingContract, eq(workingContract.id, terms.id))
    .where(and(eq(terms.caller, caller), eq(terms.bodyHash, bodyHash)));
  if (row === undefined) return null;

  const id = row.terms.id as Address;
  if (row.phase !== null && row.phase !== "none") throw duplicate(id);
  if (row.terms.openedAt !== null && !(await wasTakenBack(deps, id))) throw duplicate(id);
  const escrowTerms = parseStoredTerms(row.terms.escrowTerms);
  if (deps.clock.now() >= escrowTerms.matchDeadline) {
    throw new AppError("conflict", {
      message: `The matchDeadline, ${isoTime(escrowTerms.matchDeadline)}, has passed. Post the contract with later deadlines.`,
    });
  }
  return { id, caller, bodyHash, escrowTerms, document: row.terms.document, draft, known: true };
}

/** Whether a contract that was opened is gone for good: a reorganisation took it, and its payment did not come again. */
async function wasTakenBack({ db, publicClient }: Deps, id: Address): Promise<boolean> {
  if (await findLiveCreation(db, id)) return false;
  const code = await publicClient.getCode({ address: id });
  if (code === undefined) return true;
  return (await publicClient.readContract({ address: id, abi: escrowAbi, functionName: "status" })) === 0;
}

async function newAttempt(deps: Deps, { caller, rawBody, draft }: CreateCall): Promise<CreationAttempt> {
  checkDeadlines(draft, deps.clock.now());
  const document = termsDocument({ ...draft, salt: creationSalt(caller, rawBody) });
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
    parameters: await readParameters(deps),
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
  };
}

/** No quote for what could not be paid: a creation on its way, or one under parameters that are no longer accepted. */
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
      "The protocol parameters have changed since these bytes were first quoted. Post the contract again with another idempotencyKey.",
  });
}

async function readParameters({ publicClient, deployment }: Deps): Promise<Parameters> {
  return publicClient.readContract({
    address: deployment.factory,
    abi: factoryAbi,
    functionName: "parameters",
  });
}

function depositOf({ workerInitiated, price, parameters }: EscrowTerms): bigint {
  return workerInitiated ? workerStake(price, parameters) : price;
}

function hashOf(rawBody: Uint8Array): string {
  return createHash("sha256").update(rawBody).digest("hex");
}

function duplicate(contractId: Address): AppError {
  return new AppError("duplicate_contract", {
    message: `You posted the same bytes before; they became the contract ${contractId}. To post another one like it, give it an idempotencyKey of its own.`,
    details: { contractId },
  });
}
