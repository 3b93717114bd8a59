/** The actions as tables, and the delivery: its reference is stored encrypted, its hash and the root go on chain. */

import { computeCriteria } from "@working-contracts/protocol/checkpoints";
import { depositsOf, disputeBond } from "@working-contracts/protocol/ledger";
import { packOutcomes } from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import { keccak256, stringToHex } from "viem";
import type { Executor, Transaction } from "../../db/client.js";
import { delivery, terms } from "../../db/schema.js";
import { prepare } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, forbidden, invalidField } from "../../errors.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { PaidAction, StoredResponse } from "../../payments/relayed-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { MAX_QUEUED } from "../../relayer/limits.js";
import {
  approveOperation,
  cancelOperation,
  declineOperation,
  deliverOperation,
  type NewOperation,
  settleOperation,
  withdrawOperation,
} from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { authorize } from "../agents/delegation.js";
import {
  type CheckpointsBy,
  checkpointCount,
  countCheckpoints,
  lockCheckpoints,
  readLastCheckpoint,
  rootOf,
} from "../checkpoints/checkpoint-trees.js";
import { deliveryOf, encryptWithNewKey, encryptWithStoredKey } from "../references/vault.js";
import {
  type ActionRequest,
  type ActionRow,
  loadContractForAction,
  performUnpaidCall,
  requireBefore,
  requireClient,
  requireInitiator,
  requireOwn,
  requireStatus,
  requireWorker,
} from "./actions.js";
import { type ContractRow, parametersOf, viewContract } from "./view.js";

/** Role (403), status and deadline (409) that a free action requires, and the operation it becomes. */
const FREE_ACTIONS = {
  approve: [requireClient, "under-review", "reviewDeadline", approveOperation],
  cancel: [requireInitiator, "created", "matchDeadline", cancelOperation],
  decline: [requireDecliner, "created", "matchDeadline", declineOperation],
  withdraw: [requireWorker, "matched", "withdrawalDeadline", withdrawOperation],
} as const;

type SignableCall = Required<ActionRequest> & { id: Address };

/** Performs one action of the table and responds with the contract as this action left it. */
export function performFreeAction(
  deps: Deps,
  name: keyof typeof FREE_ACTIONS,
  { id, ...request }: SignableCall,
): Promise<StoredResponse> {
  const [requireRole, status, deadline, toOperation] = FREE_ACTIONS[name];
  const { caller, actionHeaders } = request;
  return performUnpaidCall(deps, {
    ...request,
    name: `${name} ${id}`,
    subject: { escrow: id },
    store: async (requestHash) => {
      const row = await loadContractForAction(deps, id);
      const now = deps.clock.now();
      requireRole(row, caller);
      requireStatus(row, status, now);
      requireBefore(deadline, row.chain[deadline], now);
      const notAfter = Number(row.chain[deadline]) - 1;
      const operation = { ...toOperation({ escrow: id, caller, requestHash, notAfter }), caller };
      const ending = await authorize(deps, operation, { action: name, headers: actionHeaders });
      if (row.chain.payoutHold > 0) return enqueue(deps.db, ending);
      return deps.db.transaction((tx) => enqueueWithSettlement(tx, ending, id));
    },
    // The contract can be settled by now, even in the same transaction; this action itself did not settle it.
    respond: async () => ({ data: await viewContract(deps, id, { settled: false }) }),
  });
}

/** The settlement travels in the batch of the action that ends the contract. If it cannot be stored, the keeper settles. */
async function enqueueWithSettlement(tx: Transaction, ending: NewOperation, escrow: Address) {
  const stored = await enqueue(tx, ending);
  if (stored.existing) return stored;
  await enqueue(tx, settleOperation({ escrow }), { maxQueued: MAX_QUEUED / 2 }).catch((error) => {
    if (!(error instanceof AppError)) throw error;
  });
  return stored;
}

/** Throws 403 unless the caller can accept the contract: never its initiator, and only the named party if one is named. */
function requireAcceptor({ chain }: ContractRow, caller: Address): void {
  if (caller === chain.initiator) throw forbidden("You posted this contract; someone else has to accept it.");
  if (chain.namedCounterparty === null || chain.namedCounterparty === caller) return;
  const role = chain.workerInitiated ? "buyer it is reserved for" : "worker named in it";
  throw forbidden(`Only the ${role} can accept or decline this contract.`);
}

/** Throws 400 if the contract names no one, otherwise as {@link requireAcceptor}. */
function requireDecliner(row: ContractRow, caller: Address): void {
  if (row.chain.namedCounterparty === null) {
    const sentence = "accept: must be true, because a contract that is open to anyone cannot be declined";
    throw invalidField("accept", "must be true", sentence);
  }
  requireAcceptor(row, caller);
}

/** Role (403) and status (409) that a paid action requires, and its payment. */
const PAID_ACTIONS = {
  accept: {
    requireRole: requireAcceptor,
    status: "created",
    deadline: "matchDeadline",
    amountOf: (facts: PaymentFacts) => depositsOf(facts).acceptor,
    payment: ({ workerInitiated }: PaymentFacts) => (workerInitiated ? "Price of" : "Worker Stake for"),
    alreadyDone: "You have already accepted this contract, with another payment.",
  },
  dispute: {
    requireRole: requireClient,
    status: "under-review",
    deadline: "reviewDeadline",
    amountOf: ({ price, parameters }: PaymentFacts) => disputeBond(price, parameters),
    payment: () => "Dispute Bond for",
    alreadyDone: "You have already disputed this contract, with another payment.",
  },
} as const;

type PaymentFacts = Parameters<typeof depositsOf>[0];

/** Quotes one action of the table, or performs it once it is paid: matches the caller, or opens the dispute. */
export async function performPaidAction(
  deps: Deps,
  name: keyof typeof PAID_ACTIONS,
  { id, caller, ...request }: { id: Address; caller: Address; rawBody: Uint8Array; headers: HeaderReader },
): Promise<StoredResponse> {
  const { requireRole, status, deadline, amountOf, payment, alreadyDone } = PAID_ACTIONS[name];
  return performPaidCall(deps, {
    name: `${name} ${id}`,
    path: `/v1/contracts/${id}/${name}`,
    caller,
    ...request,
    check: async (): Promise<PaidAction> => {
      const row = await loadContractForAction(deps, id);
      requireRole(row, caller);
      requireStatus(row, status, deps.clock.now());
      const facts = { ...row.chain, parameters: parametersOf(row) };
      return {
        kind: name,
        payTo: id,
        amount: amountOf(facts),
        description: `${payment(facts)} the contract "${row.terms.title}"`,
        lastSecond: Number(row.chain[deadline]) - 1,
        alreadyDone: () => conflict(alreadyDone),
      };
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

/** Delivers a reference (hash or URI) to the Worker's output, once. */
export async function deliver(
  deps: Deps,
  { id, reference, ...request }: SignableCall & { reference: string },
): Promise<StoredResponse> {
  const { caller, actionHeaders } = request;
  return performUnpaidCall(deps, {
    ...request,
    name: `deliver ${id}`,
    subject: { escrow: id },
    store: async (requestHash) => {
      const row = await loadContractForAction(deps, id);
      requireWorker(row, caller);
      requireStatus(row, "matched", deps.clock.now());
      // Before the lock, to keep that short: builds most of the tree, and asks the chain who allows the delivery.
      const input = { row, caller, reference, requestHash };
      const expected = await buildDelivery(deps.db, deps, input);
      const authorized = await authorize(deps, expected, { action: "deliver", headers: actionHeaders });
      const encrypted = await encryptWithNewKey({ ...vaultInput(deps, { id, caller }), reference });
      return deps.db.transaction(async (tx) => {
        await lockCheckpoints(tx, id);
        const checkpoints = await storeDelivery(tx, deps, { id, caller, reference, encrypted });
        const isComplete = checkpoints === row.checkpoints;
        if (!isComplete && authorized.data !== expected.data) {
          throw new AppError("conflict", {
            message: "A checkpoint was added while you signed. Sign the delivery again.",
            retryable: true,
          });
        }
        const complete = isComplete
          ? authorized
          : await buildDelivery(tx, deps, { ...input, row: { ...row, checkpoints } });
        // In the transaction: of a delivery that loses nothing is stored.
        return requireOwn(await enqueue(tx, complete), requestHash);
      });
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

/** Anchors all checkpoints so far. For the operation that is stored they are locked, so that none is left out. */
async function buildDelivery(
  db: Executor,
  deps: Deps,
  input: { row: ActionRow; caller: Address; reference: string; requestHash: string },
): Promise<NewOperation & { caller: Address }> {
  const { row, caller, reference, requestHash } = input;
  const { id: escrow, criteriaCount, computedCriteria, deliveryDeadline } = row.chain;
  const by = { contractId: escrow, worker: caller };
  const checkpointsRoot = rootOf(await deps.checkpointTrees.of(db, by, row.checkpoints));
  const outcomes = computedCriteria ? packOutcomes(await computeOutcomes(db, by, criteriaCount)) : 0;
  const notAfter = Number(deliveryDeadline) - 1;
  const delivered = { deliveryHash: hashOf(reference), checkpointsRoot, outcomes };
  return { ...deliverOperation({ escrow, caller, requestHash, ...delivered, notAfter }), caller };
}

const hashOf = (reference: string): Hex => keccak256(stringToHex(reference));

async function computeOutcomes(db: Executor, by: CheckpointsBy, criteriaCount: number) {
  const [row] = await db
    .select({ applicationTerms: terms.applicationTerms })
    .from(terms)
    .where(eq(terms.id, by.contractId));
  const applicationTerms = row?.applicationTerms ?? null;
  const metrics = (await readLastCheckpoint(db, by))?.data ?? null;
  return computeCriteria({ criteriaCount, applicationTerms, metrics });
}

const vaultInput = (
  { config: { masterKey, masterKeysOld } }: Deps,
  { id: contractId, caller }: { id: Address; caller: Address },
) => ({ contractId, field: deliveryOf(caller), masterKey, masterKeysOld });

const BY = { id: sql.placeholder("id"), worker: sql.placeholder("worker") };
/** Stores a delivery and its new key, and counts the Worker's checkpoints; no row if an earlier delivery left a key. */
const deliveryInsert = prepare<{ checkpoints: number }>(
  "delivery_insert",
  sql`
    with key as (
      insert into app.reference_key (contract_id, field, wrapped_key, master_key_id)
      values (${BY.id}, ${sql.placeholder("field")}, ${sql.placeholder("wrappedKey")}, ${sql.placeholder("masterKeyId")})
      on conflict do nothing returning contract_id),
    stored as (
      insert into app.delivery (contract_id, worker, delivery_hash, encrypted)
      select contract_id, ${BY.worker}, ${sql.placeholder("deliveryHash")}, ${sql.placeholder("encrypted")} from key
      on conflict do nothing)
    select ${checkpointCount(BY.id, BY.worker)} as checkpoints from key`,
);

interface StoredDelivery {
  id: Address;
  caller: Address;
  reference: string;
  encrypted: Awaited<ReturnType<typeof encryptWithNewKey>>;
}

/** A rejected delivery costs its Worker nothing. Older ones are deleted: it can send the hash of one of these itself. */
const MAX_DELIVERIES = 10;

/** Readers see it once its hash is on chain. Returns the number of checkpoints, which is final under their lock. */
async function storeDelivery(
  tx: Transaction,
  deps: Deps,
  { id, caller, reference, encrypted }: StoredDelivery,
): Promise<number> {
  const deliveryHash = hashOf(reference);
  const field = deliveryOf(caller);
  const [stored] = await deliveryInsert(tx, { id, worker: caller, field, deliveryHash, ...encrypted });
  if (stored !== undefined) return stored.checkpoints;
  const by = { contractId: id, worker: caller };
  const underStoredKey = await encryptWithStoredKey(tx, { ...vaultInput(deps, { id, caller }), reference });
  await tx
    .insert(delivery)
    .values({ ...by, deliveryHash, encrypted: underStoredKey })
    .onConflictDoNothing();
  await tx.execute(sql`
    delete from app.delivery where contract_id = ${id} and delivery_hash <> ${deliveryHash} and id in (
      select id from app.delivery where contract_id = ${id} order by id desc offset ${MAX_DELIVERIES})`);
  return countCheckpoints(tx, by);
}
