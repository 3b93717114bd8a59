/** Checks that the lifecycle's actions share: role, status and deadline. */

import { type Status, statusOf } from "@working-contracts/protocol/status";
import type { Address } from "@working-contracts/protocol/types";
import { AppError } from "../../errors.js";
import { type ContractRow, factsOf, isoTime } from "./view.js";

/** Throws 403 unless the caller is the matched worker. Before a match no one is. */
export function requireWorker({ chain }: ContractRow, caller: Address): void {
  if (chain.matchedAt !== null && chain.worker === caller) return;
  throw new AppError("forbidden", { message: "Only the contract's matched worker may do this." });
}

/** Throws 403 unless the caller is the contract's client. */
export function requireClient({ chain }: ContractRow, caller: Address): void {
  if (chain.client === caller) return;
  throw new AppError("forbidden", { message: "Only the contract's client may do this." });
}

/** Throws 403 unless the caller posted the contract. */
export function requireInitiator({ chain }: ContractRow, caller: Address): void {
  if (chain.initiator === caller) return;
  throw new AppError("forbidden", { message: "Only the initiator of the contract may do this." });
}

/** Throws 409 unless the contract is in `expected` at `now`, naming its status and the deadline that caused it. */
export function requireStatus(row: ContractRow, expected: Status, now: number): void {
  const status = statusOf(factsOf(row), now);
  if (status === expected) return;
  throw new AppError("conflict", {
    message: `The contract is ${status}${passedDeadline(row, status)}; this call needs ${expected}.`,
    details: { status, expected },
  });
}

/** Throws 409 from the second of `deadline` on. */
export function requireBefore(name: string, deadline: bigint, now: number): void {
  if (BigInt(now) < deadline) return;
  throw new AppError("conflict", { message: `The ${name}, ${isoTime(Number(deadline))}, has passed.` });
}

function passedDeadline({ chain }: ContractRow, status: Status): string {
  const deadline =
    status === "cancelled-unmatched" && chain.phase === "created"
      ? (["matchDeadline", chain.matchDeadline] as const)
      : status === "cancelled-absent"
        ? (["deliveryDeadline", chain.deliveryDeadline] as const)
        : status !== "under-review" && chain.phase === "delivered"
          ? (["reviewDeadline", chain.reviewDeadline] as const)
          : null;
  return deadline === null ? "" : ` (its ${deadline[0]}, ${isoTime(Number(deadline[1]))}, has passed)`;
}
