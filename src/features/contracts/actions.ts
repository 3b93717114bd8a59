/** Actions on a contract: loads it, checks role, status and deadline, and performs those without a payment. */
import { ENDING_DEADLINES, endingOf, type Status, statusOf } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { eq, type SQL, sql } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import type { Executor } from "../../db/client.js";
import { type IndexReader, requireIndex, voterFacts, workingContract } from "../../db/onchain.js";
import { operation } from "../../db/schema.js";
import { prepareRows } from "../../db/statements.js";
import type { Deps } from "../../deps.js";
import { AppError, conflict, forbidden, unavailable } from "../../errors.js";
import type { ActionHeaders } from "../../http/endpoint.js";
import {
  awaitOutcome,
  type CallIdentity,
  orStored,
  requestHash,
  type StoredResponse,
  type Success,
} from "../../payments/relayed-call.js";
import type { OperationKind } from "../../relayer/operations.js";
import type { OperationRow } from "../../relayer/outbox.js";
import { checkpointCount } from "../checkpoints/checkpoint-trees.js";
import { type ContractRow, factsOf, noContract, selectContracts } from "./view.js";

/** A contract's row, with the number of its Worker's checkpoints and the facts about one agent that might vote on it. */
export type ActionRow = Awaited<ReturnType<ReturnType<typeof prepareOn>["execute"]>>[number];

/** Throws 404, and 503 while the index lacks an operation on it that was reported as applied: that is about to change. */
export async function loadContractForAction(
  reader: IndexReader,
  id: Address,
  voter: Address | null = null,
): Promise<ActionRow> {
  const { db } = reader;
  const [row] = await preparedOn(db).execute({ id, voter });
  if (row !== undefined) {
    await requireIndex(reader, [row]);
    if (row.isReorganized) throw reorganized();
    return row;
  }
  await requireIndex(reader);
  // One query: a contract that reappears between two queries would look as if it had never existed.
  const { rows } = await db.execute<{ unsure: boolean }>(sql`
    select ${lacksReported(sql`${id}`)} or exists (
      select 1 from ${workingContract} where ${workingContract.id} = ${id} and ${workingContract.phase} <> 'none'
    ) as unsure`);
  throw rows[0]?.unsure === true ? reorganized() : noContract(id);
}

/** Prepared once per database handle: planning this statement takes longer than running it. */
const prepared = new WeakMap<Executor, ReturnType<typeof prepareOn>>();

function prepareOn(db: Executor) {
  const id = sql.placeholder("id");
  return selectContracts(db, eq(workingContract.id, id), {
    isReorganized: lacksReported(sql`${id}`),
    checkpoints: checkpointCount(workingContract.id, workingContract.worker),
    voter: voterFacts(id, sql.placeholder("voter")),
  })
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
  return unavailable(
    "A chain reorganization affected this contract; its operations are being applied again. Retry the request.",
  );
}

/** Throws 403 unless the caller has the role. */
const roleCheck =
  (role: "worker" | "client" | "initiator", name: string) =>
  ({ chain }: ContractRow, caller: Address): void => {
    const holder = chain[role];
    if (holder === caller) return;
    const who = holder === null ? name : `${name}, ${holder},`;
    throw forbidden(`Only the ${who} can do this; your key belongs to ${caller}.`);
  };

/** Matched or only named; an open tender has none yet. */
export const requireWorker = roleCheck("worker", "contract's worker");
export const requireClient = roleCheck("client", "contract's client");
export const requireInitiator = roleCheck("initiator", "initiator of the contract");

/** The agent's role; null if it is no party. */
export function roleOf({ chain }: ContractRow, agent: Address): "client" | "worker" | null {
  if (agent === chain.client) return "client";
  return agent === chain.worker ? "worker" : null;
}

/** Throws 409 unless the contract is in `expected` at `now`, naming its status and the deadline that caused it. */
export function requireStatus(row: ContractRow, expected: Status, now: number): void {
  const status = statusOf(factsOf(row), now);
  if (status === expected) return;
  throw conflict(`The contract is ${status}${passedDeadline(row, now)}; this call needs ${expected}.`, {
    status,
    expected,
  });
}

/** Throws 409 from the second of `deadline` on. */
export function requireBefore(name: string, deadline: bigint, now: number): void {
  if (BigInt(now) >= deadline) throw conflict(`The ${name}, ${isoTime(deadline)}, has passed.`);
}

function passedDeadline(row: ContractRow, now: number): string {
  const ending = endingOf(factsOf(row), now);
  const name = ending && ENDING_DEADLINES[ending];
  return !name ? "" : ` (its ${name}, ${isoTime(row.chain[name])}, has passed)`;
}

/** A caller's request, whose bytes identify it. */
export type ActionRequest = Omit<CallIdentity, "name"> & { actionHeaders?: ActionHeaders };

interface UnpaidCall extends ActionRequest {
  name: string;
  /** The escrow that is acted on; otherwise the operation's kind and once-key. */
  subject: { escrow: Address } | { kind: OperationKind; onceKey: string };
  /** Checks the call, ensures the caller's delegation, and stores the operation. Throws to refuse. */
  store(requestHash: string): Promise<{ operation: OperationRow; existing: boolean }>;
  /** Reads the response after the action was applied on chain. */
  respond(): Promise<Success>;
}

/** Performs an action through the Relay. A retry continues it; after the response, without an idempotency key, it is a new call. */
export async function performUnpaidCall(deps: Deps, call: UnpaidCall): Promise<StoredResponse> {
  const key = call.actionHeaders?.["idempotency-key"];
  const hash = requestHash(key === undefined ? call : { ...call, name: `${call.name}\n${key}` });
  const find = () => findOperation(deps, call, { hash, includesReported: key !== undefined });
  const stored = (await find()) ?? (await orStored(storeOperation(deps, call, hash), find));
  const outcome = await awaitOutcome(deps, stored, call.respond);
  if (outcome.ok) return outcome.response;

  const { id, kind, reason, signed, notAfter } = outcome.rejected;
  deps.logger.info({ operation: id.toString(), kind, reason }, "operation rejected");
  const meaning = meaningOf(reason ?? "");
  if (meaning !== null) {
    throw new AppError(meaning.code, { message: `${meaning.message}.`, details: { reason } });
  }
  // Otherwise the contract's deadline came first.
  const isSignedDeadline = signed && notAfter === Number(call.actionHeaders?.["action-deadline"]) - 1;
  if (reason === "Expired" && isSignedDeadline) {
    const message =
      "The deadline that you signed passed before the action reached the chain, so it was not carried out. Sign it again.";
    throw new AppError("conflict", { message, retryable: true });
  }
  if (reason === "Expired") throw conflict("The deadline for this call passed before it reached the chain.");
  throw unavailable("The operation was not performed; retry the request.", 2, { reason });
}

/** Throws 409 if the outbox has another request's operation for the same action. */
export function requireOwn<Stored extends { operation: OperationRow; existing: boolean }>(
  stored: Stored,
  hash: string,
): Stored {
  if (!stored.existing || stored.operation.requestHash === hash) return stored;
  throw new AppError("conflict", {
    message: "A concurrent request is performing the same action. Check its result before you retry.",
    retryable: true,
  });
}

async function storeOperation(deps: Deps, call: UnpaidCall, hash: string): Promise<OperationRow> {
  const stored = requireOwn(await call.store(hash), hash);
  const { id, kind, escrow } = stored.operation;
  if (!stored.existing) deps.logger.info({ operation: id.toString(), kind, escrow }, "operation stored");
  return stored.operation;
}

const identical = (by: string, ofSubject: SQL) =>
  prepareRows(
    `operation_identical_by_${by}`,
    operation,
    sql`where ${ofSubject} and request_hash = ${sql.placeholder("hash")} and state <> 'rejected'
      and (response is null or ${sql.placeholder("includesReported")}::boolean) limit 1`,
  );
const IDENTICAL = {
  escrow: identical("escrow", sql`escrow = ${sql.placeholder("escrow")}`),
  onceKey: identical("once_key", sql`once_key = ${sql.placeholder("onceKey")}`),
  kind: identical("kind", sql`caller = ${sql.placeholder("caller")} and kind = ${sql.placeholder("kind")}`),
};

/** The operation of an identical call without a response yet, or with `includesReported` also one with a response. */
async function findOperation(
  { db }: Deps,
  { subject, caller }: UnpaidCall,
  given: { hash: string; includesReported: boolean },
): Promise<OperationRow | undefined> {
  const by = "escrow" in subject ? "escrow" : given.includesReported ? "kind" : "onceKey";
  const [row] = await IDENTICAL[by](db, { ...subject, caller, ...given });
  return row;
}
