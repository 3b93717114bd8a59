/** POST /v1/contracts/{id}/delivery: stores the reference encrypted; its hash and the checkpoints' root go on chain. */
import { type Outcome, packOutcomes } from "@working-contracts/protocol/outcomes";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { eq } from "drizzle-orm";
import { keccak256, stringToHex } from "viem";
import type { Transaction } from "../../db/client.js";
import { delivery, terms } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import { deliverOperation, type NewOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { ensureDelegation } from "../agents/delegation.js";
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
  /** Reference (hash or URI) to the Worker's output. */
  reference: string;
}

/** Delivers once. Refuses with 403 (not the matched worker) and 409 (not in `matched`). */
export async function deliver(
  deps: Deps,
  { id, caller, rawBody, reference }: DeliverCall,
): Promise<StoredResponse> {
  return performAction(deps, {
    action: `deliver ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    store: async (requestHash) => {
      const row = await loadContractForAction(deps.db, id);
      requireWorker(row, caller);
      requireStatus(row, "matched", deps.clock.now());
      // Builds most of the tree before the lock, to keep that short.
      await deps.checkpointTrees.of(deps.db, id);
      await ensureDelegation(deps, caller);
      return deps.db.transaction(async (tx) =>
        enqueue(tx, await buildDelivery(tx, deps, { row, id, caller, reference, requestHash })),
      );
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

/** The checkpoints are locked until the operation is stored, so none can be added after the root was computed. */
async function buildDelivery(
  tx: Transaction,
  deps: Deps,
  input: { row: ContractRow; id: Address; caller: Address; reference: string; requestHash: string },
): Promise<NewOperation> {
  const { row, id, caller, reference, requestHash } = input;
  const { criteriaCount, computedCriteria, deliveryDeadline } = row.chain;
  await lockCheckpoints(tx, id);
  const tree = await deps.checkpointTrees.of(tx, id);
  const metrics = (await readLastCheckpoint(tx, id))?.data ?? null;
  const outcomes = computedCriteria
    ? packOutcomes(
        computeCriteria({ criteriaCount, applicationTerms: await readApplicationTerms(tx, id), metrics }),
      )
    : 0;
  return deliverOperation({
    escrow: id,
    caller,
    requestHash,
    deliveryHash: await storeDelivery(tx, deps, { id, caller, reference }),
    checkpointsRoot: rootOf(tree),
    outcomes,
    notAfter: Number(deliveryDeadline) - 1,
  });
}

async function readApplicationTerms(tx: Transaction, id: Address): Promise<Record<string, unknown> | null> {
  const [row] = await tx
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
): Promise<Hex> {
  const deliveryHash = keccak256(stringToHex(reference));
  const { masterKey, masterKeysOld } = config;
  const place = { contractId: id, field: "delivery", masterKey, masterKeysOld } as const;
  const encrypted = await encryptReference(tx, { ...place, reference });
  await tx
    .insert(delivery)
    .values({ contractId: id, worker: caller, deliveryHash, encrypted })
    .onConflictDoNothing();
  return deliveryHash;
}

const COMPARISONS: Record<string, (value: number, target: number) => boolean> = {
  ">=": (value, target) => value >= target,
  ">": (value, target) => value > target,
  "<=": (value, target) => value <= target,
  "<": (value, target) => value < target,
  "==": (value, target) => value === target,
};

interface Rule {
  metric: string;
  op: string;
  target: number;
}

/**
 * One outcome per criterion. Rule `i` is `applicationTerms.criteria[i]`; a missing or malformed one gives `unclear`, a
 * valid one without a number to compare gives `not met`.
 */
export function computeCriteria(input: {
  criteriaCount: number;
  applicationTerms: Record<string, unknown> | null;
  /** `data` of the last checkpoint; null if there is none. */
  metrics: Record<string, unknown> | null;
}): Outcome[] {
  const rules = input.applicationTerms?.criteria;
  return Array.from({ length: input.criteriaCount }, (_, i) => {
    const rule = ruleOf(Array.isArray(rules) ? rules[i] : undefined);
    if (rule === null) return "unclear";
    const value =
      input.metrics !== null && Object.hasOwn(input.metrics, rule.metric) ? input.metrics[rule.metric] : null;
    if (typeof value !== "number") return "not met";
    return COMPARISONS[rule.op]?.(value, rule.target) === true ? "met" : "not met";
  });
}

function ruleOf(value: unknown): Rule | null {
  if (typeof value !== "object" || value === null) return null;
  const { metric, op, target } = value as Record<string, unknown>;
  const sound =
    typeof metric === "string" &&
    metric !== "" &&
    typeof op === "string" &&
    Object.hasOwn(COMPARISONS, op) &&
    typeof target === "number";
  return sound ? { metric, op, target } : null;
}
