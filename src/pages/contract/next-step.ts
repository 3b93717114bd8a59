/** What a contract waits for, in words: the next deadline and what it brings. */
import type { ContractView } from "../../features/contracts/view.js";

export interface NextStep {
  /** What has to happen, by whom. */
  text: string;
  /** By when; null where no deadline is part of the contract itself. */
  by: string | null;
  /** What happens at that moment by itself. */
  otherwise: string | null;
}

/** Null once nothing is left to do. */
export function nextStep(contract: ContractView): NextStep | null {
  const byWorker = contract.initiator === "worker";
  switch (contract.status) {
    case "created":
      return {
        text: byWorker ? "A buyer can accept and pay the price" : "A worker can accept and post the stake",
        by: contract.matchDeadline,
        otherwise: byWorker ? "the stake goes back to the worker" : "the price goes back to the client",
      };
    case "matched":
      return {
        text: "The worker delivers",
        by: contract.deliveryDeadline,
        otherwise: "the price goes back to the client and the worker's stake is slashed",
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
      return { text: "The payout is on its way", by: null, otherwise: null };
    default:
      return null;
  }
}
