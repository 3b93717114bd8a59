/** Loads a contract for an action on it, and the checks that actions share: role, status and deadline. */

import { type Status, statusOf } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { eq, type SQL, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { requireIndex, workingContract } from "../../db/onchain.js";
import { AppError } from "../../errors.js";
import { type ContractRow, factsOf, noContract, selectContracts } from "./view.js";

/**
 * The row of one contract. Throws 404 `not_found`, and 503 `unavailable` while the index lacks an operation on it that was
 * reported as applied: no one is refused, or asked for money, because of a state that is about to change.
 */
export async function loadContractForAction(db: Executor, id: Address): Promise<ContractRow> {
  const [row] = await preparedOn(db).execute({ id });
  if (row !== undefined) {
    await requireIndex(db, [row]);
    if (row.isReorganized) throw reorganized();
    return row;
  }
  await requireIndex(db);
  // One query: a contract that reappears between two queries would look as if it had never existed.
  const { rows } = await db.execute<{ unsure: boolean }>(sql`
    select ${lacksReported(sql`${id}`)} or exists (
      select 1 from ${workingContract} where ${workingContract.id} = ${id} and ${workingContract.phase} <> 'none'
    ) as unsure`);
  throw rows[0]?.unsure === true ? reorganized() : noContract(id);
}

/** By handle: the planner takes longer for this statement than the statement itself. */
const prepared = new WeakMap<Executor, ReturnType<typeof prepareOn>>();

function prepareOn(db: Executor) {
  const id = sql.placeholder("id");
  const isReorganized = lacksReported(sql`${id}`);
  return selectContracts(db, eq(workingContract.id, id), { isReorganized })
    .limit(1)
    .prepare("contract_for_action");
}

function preparedOn(db: Executor) {
  const statement = prepared.get(db) ?? prepareOn(db);
  prepared.set(db, statement);
  return statement;
}

/** SQL: whether an operation on the escrow that has a response waits to be applied or indexed again. */
function lacksReported(escrow: SQL) {
  return sql<boolean>`exists (
    select 1 from app.operation reported
    where reported.escrow = ${escrow} and reported.response is not null and (
      reported.state in ('queued', 'held', 'sent')
      or reported.state = 'mined' and not exists (
        select 1 from onchain.escrow_event event
        where event.contract_id = reported.escrow and event.block_number = reported.block_number
          and event.block_hash = reported.block_hash)))`;
}

function reorganized(): AppError {
  return new AppError("unavailable", {
    message:
      "A chain reorganization affected this contract; its operations are being applied again. Retry the request.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}

/** Throws 403 unless the caller is the contract's worker, matched or only named. An open tender has none yet. */
export function requireWorker({ chain }: ContractRow, caller: Address): void {
  if (chain.worker === caller) return;
  throw new AppError("forbidden", { message: "Only the contract's worker may do this." });
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
