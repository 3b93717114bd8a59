/** The actions on a contract that cost nothing and carry no data, as one table. */
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import {
  approveOperation,
  cancelOperation,
  declineOperation,
  withdrawOperation,
} from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { ensureDelegation } from "../agents/delegation.js";
import { loadContractForAction } from "./load-for-action.js";
import { requireBefore, requireClient, requireInitiator, requireStatus, requireWorker } from "./parties.js";
import { performAction } from "./perform-action.js";
import { type ContractRow, loadContract, toContract } from "./view.js";

/** Role (403), status and deadline (409) that an action requires, and the operation it becomes. */
const ACTIONS = {
  approve: {
    requireRole: requireClient,
    status: "under-review",
    deadline: "reviewDeadline",
    toOperation: approveOperation,
  },
  cancel: {
    requireRole: requireInitiator,
    status: "created",
    deadline: "matchDeadline",
    toOperation: cancelOperation,
  },
  decline: {
    requireRole: requireDecliner,
    status: "created",
    deadline: "matchDeadline",
    toOperation: declineOperation,
  },
  withdraw: {
    requireRole: requireWorker,
    status: "matched",
    deadline: "withdrawalDeadline",
    toOperation: withdrawOperation,
  },
} as const;

/** Performs one action of the table and responds with the contract as this action left it. */
export function performLifecycleAction(
  deps: Deps,
  name: keyof typeof ACTIONS,
  { id, caller, rawBody }: { id: Address; caller: Address; rawBody: Uint8Array },
): Promise<StoredResponse> {
  const { requireRole, status, deadline, toOperation } = ACTIONS[name];
  return performAction(deps, {
    action: `${name} ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    store: async (requestHash) => {
      const row = await loadContractForAction(deps.db, id);
      const now = deps.clock.now();
      requireRole(row, caller);
      requireStatus(row, status, now);
      requireBefore(deadline, row.chain[deadline], now);
      await ensureDelegation(deps, caller);
      const notAfter = Number(row.chain[deadline]) - 1;
      return enqueue(deps.db, toOperation({ escrow: id, caller, requestHash, notAfter }));
    },
    // The keeper can have settled the contract by now; this action itself did not.
    respond: async () => {
      const row = await loadContract(deps.db, id);
      return { data: toContract({ ...row, chain: { ...row.chain, settled: false } }, deps.clock.now()) };
    },
  });
}

/** Throws 403 unless the caller can accept the contract: never its initiator, and only the named party if one is named. */
export function requireAcceptor({ chain }: ContractRow, caller: Address): void {
  if (caller === chain.initiator) {
    throw new AppError("forbidden", { message: "You posted this contract; someone else has to accept it." });
  }
  if (chain.namedCounterparty === null || chain.namedCounterparty === caller) return;
  const role = chain.workerInitiated ? "buyer it is reserved for" : "worker named in it";
  throw new AppError("forbidden", { message: `Only the ${role} can accept or decline this contract.` });
}

/** Throws 400 if the contract names no one, otherwise as {@link requireAcceptor}. */
function requireDecliner(row: ContractRow, caller: Address): void {
  if (row.chain.namedCounterparty === null) {
    const message = "accept: must be true: the contract is open to anyone, so there is nothing to decline";
    throw new AppError("invalid_request", {
      message,
      details: [{ path: "accept", message: "must be true" }],
    });
  }
  requireAcceptor(row, caller);
}
