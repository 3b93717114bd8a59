/** The next step of a contract in words: the action, its deadline and the consequence of missing it. */
import type { ContractView } from "../../features/contracts/view.js";

export interface NextStep {
  /** The expected action and who takes it. */
  text: string;
  /** The deadline; null if the contract itself sets none. */
  by: string | null;
  /** The consequence if the deadline passes. */
  otherwise: string | null;
}

/** Returns null once nothing is left to do. */
export function nextStep(contract: ContractView): NextStep | null {
  const byWorker = contract.initiator === "worker";
  switch (contract.status) {
    case "created":
      return {
        text: byWorker ? "A buyer can accept and pay the price" : "A worker can accept and post the stake",
        by: contract.matchDeadline,
        otherwise: byWorker ? "the stake is refunded to the worker" : "the price is refunded to the client",
      };
    case "matched":
      return {
        text: "The worker delivers",
        by: contract.deliveryDeadline,
        otherwise: "the price is refunded to the client and the worker's stake is slashed",
      };
    case "under-review":
      return {
        text: "The client approves or disputes",
        by: contract.reviewDeadline,
        otherwise: "the delivery counts as approved",
      };
    case "disputed":
      return { text: "Backup Agents vote on every criterion", by: null, otherwise: null };
    case "resolved":
      return { text: "The payout is pending", by: null, otherwise: null };
    default:
      return null;
  }
}
