/** The actions on a contract that cost nothing and carry no data: one table, one procedure. */
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import {
  approveOperation,
  cancelOperation,
  declineOperation,
  withdrawOperation,
} from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireBefore, requireClient, requireInitiator, requireStatus, requireWorker } from "./parties.js";
import { performAct } from "./perform-act.js";
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

/** Performs one action of the table and returns the contract in the state that the action brought. */
export function performLifecycleAction(
  deps: Deps,
  name: keyof typeof ACTIONS,
  { id, caller, rawBody }: { id: Address; caller: Address; rawBody: Uint8Array },
): Promise<Answer> {
  const { requireRole, status, deadline, toOperation } = ACTIONS[name];
  return performAct(deps, {
    act: `${name} ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      const row = await loadContractForAct(deps.db, id);
      const now = deps.clock.now();
      requireRole(row, caller);
      requireStatus(row, status, now);
      requireBefore(deadline, row.chain[deadline], now);
      return () =>
        toOperation({ escrow: id, caller, requestHash, notAfter: Number(row.chain[deadline]) - 1 });
    },
    // The keeper can have settled the contract by now; this action itself did not.
    respond: async () => {
      const row = await loadContract(deps.db, id);
      return { data: toContract({ ...row, chain: { ...row.chain, settled: false } }, deps.clock.now()) };
    },
  });
}

/** Throws 403 unless the caller can take the contract's open side: never its initiator, and only the named party. */
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
