/** POST /v1/contracts/{id}/delivery: stores the reference encrypted; its hash and the checkpoints' root go on chain. */
import { computeCriteria } from "@working-contracts/protocol/checkpoints";
import { packOutcomes } from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { keccak256, stringToHex } from "viem";
import type { Executor, Transaction } from "../../db/client.js";
import { delivery, terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { ActionHeaders } from "../../http/operation.js";
import type { StoredResponse } from "../../payments/relayed-call.js";
import { deliverOperation, type NewOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { authorize } from "../agents/delegation.js";
import { lockCheckpoints, readLastCheckpoint } from "../checkpoints/checkpoint-trees.js";
import { rootOf } from "../checkpoints/merkle.js";
import { encryptReference } from "../references/vault.js";
import { loadContractForAction, requireStatus, requireWorker } from "./load-for-action.js";
import { performAction } from "./perform-action.js";
import { type ContractRow, viewContract } from "./view.js";

export interface DeliverCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  signature: ActionHeaders;
  /** Reference (hash or URI) to the Worker's output. */
  reference: string;
}

/** Delivers once. Refuses with 403 (not its worker) and 409 (not in `matched`). */
export async function deliver(
  deps: Deps,
  { id, caller, rawBody, signature, reference }: DeliverCall,
): Promise<StoredResponse> {
  return performAction(deps, {
    action: `deliver ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    headers: signature,
    store: async (requestHash) => {
      const row = await loadContractForAction(deps.db, id);
      requireWorker(row, caller);
      requireStatus(row, "matched", deps.clock.now());
      // Before the lock, to keep that short: builds most of the tree, and asks the chain who allows the delivery.
      const input = { row, id, caller, reference, requestHash };
      const expected = await buildDelivery(deps.db, deps, input);
      const authorized = await authorize(deps, expected, { action: "deliver", headers: signature });
      return deps.db.transaction(async (tx) => {
        await lockCheckpoints(tx, id);
        const { data } = await buildDelivery(tx, deps, input);
        const isSigned = authorized.data !== expected.data;
        if (isSigned && data !== expected.data) throw checkpointAdded();
        await storeDelivery(tx, deps, { id, caller, reference });
        return enqueue(tx, isSigned ? authorized : { ...expected, data });
      });
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

/** Anchors all checkpoints so far. For the operation that is stored they are locked, so that none is left out. */
async function buildDelivery(
  db: Executor,
  deps: Deps,
  input: { row: ContractRow; id: Address; caller: Address; reference: string; requestHash: string },
): Promise<NewOperation & { caller: Address }> {
  const { row, id, caller, reference, requestHash } = input;
  const { criteriaCount, computedCriteria, deliveryDeadline } = row.chain;
  const by = { contractId: id, worker: caller };
  const tree = await deps.checkpointTrees.of(db, by);
  const outcomes = computedCriteria ? packOutcomes(await computeOutcomes(db, by, criteriaCount)) : 0;
  const delivery = deliverOperation({
    escrow: id,
    caller,
    requestHash,
    deliveryHash: hashOf(reference),
    checkpointsRoot: rootOf(tree),
    outcomes,
    notAfter: Number(deliveryDeadline) - 1,
  });
  return { ...delivery, caller };
}

const hashOf = (reference: string): Hex => keccak256(stringToHex(reference));

function checkpointAdded(): AppError {
  return new AppError("conflict", {
    message: "A checkpoint was added while you signed. Sign the delivery again.",
    retryable: true,
  });
}

async function computeOutcomes(
  db: Executor,
  by: { contractId: Address; worker: Address },
  criteriaCount: number,
) {
  const applicationTerms = await readApplicationTerms(db, by.contractId);
  const metrics = (await readLastCheckpoint(db, by))?.data ?? null;
  return computeCriteria({ criteriaCount, applicationTerms, metrics });
}

async function readApplicationTerms(db: Executor, id: Address): Promise<Record<string, unknown> | null> {
  const [row] = await db
    .select({ applicationTerms: terms.applicationTerms })
    .from(terms)
    .where(eq(terms.id, id));
  return row?.applicationTerms ?? null;
}

/** Stored before its hash goes on chain; readers see it once the chain has the hash. */
async function storeDelivery(
  tx: Transaction,
  { config }: Deps,
  { id, caller, reference }: { id: Address; caller: Address; reference: string },
): Promise<void> {
  const { masterKey, masterKeysOld } = config;
  const place = { contractId: id, field: "delivery", masterKey, masterKeysOld } as const;
  const encrypted = await encryptReference(tx, { ...place, reference });
  await tx
    .insert(delivery)
    .values({ contractId: id, worker: caller, deliveryHash: hashOf(reference), encrypted })
    .onConflictDoNothing();
}
