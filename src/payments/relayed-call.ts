/** The outcome of relayed calls, responded once and replayed; and the data that a feature hands to the payment flow. */
import { createHash } from "node:crypto";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import { type IndexedTarget, waitForIndexed } from "../db/onchain.js";
import { operation } from "../db/schema.js";
import { prepareShared, sharedCalls } from "../db/statements.js";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import {
  type AuthorizationArguments,
  acceptOperation,
  createOperation,
  disputeOperation,
  type NewOperation,
  type OperationKind,
  stakeOperation,
  voteOperation,
} from "../relayer/operations.js";
import type { OperationRow } from "../relayer/outbox.js";
import type { HeaderReader, PaymentAsset, PaymentAuthorization } from "./x402.js";

/** A complete HTTP response. The body is JSON text, so a replay is the same to the byte. */
export interface StoredResponse {
  status: 200 | 402;
  headers: Record<string, string>;
  body: string;
}

/** The result of a successful call; the response wraps it as `{ data }`. */
export interface Success {
  data: unknown;
  headers?: Record<string, string>;
}

/** Two calls with the same identity are one call (docs/rules.md 16, 17). */
export interface CallIdentity {
  /** Names the call and its contract: `accept 0x…`. */
  name: string;
  caller: Address;
  rawBody: Uint8Array;
}

/** SHA-256 over name, caller and the body's raw bytes, hex. */
export function requestHash({ name, caller, rawBody }: CallIdentity): string {
  return createHash("sha256").update(`${name}\n${caller}\n`).update(rawBody).digest("hex");
}

/** SHA-256 over the body's raw bytes, hex. */
export const hashOfBody = (rawBody: Uint8Array): string => createHash("sha256").update(rawBody).digest("hex");

/** An operation that the chain has applied. */
export interface Applied {
  ok: true;
  response: StoredResponse;
  /** Of the first response: a reorg can have moved the operation to another one since. */
  transaction: Hex;
  /** When the first response was made, in seconds on the chain's clock. */
  settledAt: number;
}

type OperationOutcome = Applied | { ok: false; rejected: OperationRow };

/**
 * Waits until `stored` is mined and visible to readers, then responds with the result of `respond`. The first response
 * is stored and replayed. Throws 503 `settlement_pending` if that takes longer than the configured wait, or if a reorg
 * removed the block meanwhile.
 */
export async function awaitOutcome(
  deps: Deps,
  stored: OperationRow,
  respond: (mined: OperationRow) => Promise<Success>,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<OperationOutcome> {
  if (stored.response !== null) return replayOf(stored.response);

  const deadline = performance.now() + deps.config.settlementWaitMs;
  const row = await deps.outbox.waitFor(stored.id, { timeoutMs: deps.config.settlementWaitMs, isNew });
  if (row === null) throw settlementPending();
  if (row.state === "rejected") return { ok: false, rejected: row };
  if (row.response !== null) return replayOf(row.response);

  const target = {
    ...inclusionOf(row),
    escrow: row.escrow ?? undefined,
    staker: STAKING.has(row.kind) ? (row.caller ?? undefined) : undefined,
  };
  const timeoutMs = Math.max(deadline - performance.now(), 1000);
  const { data, headers = {} } = await respondFrom(deps.db, { ...target, timeoutMs }, () => respond(row));
  deps.logger.info(
    {
      operation: row.id.toString(),
      kind: row.kind,
      escrow: row.escrow,
      transaction: row.transactionHash,
      block: row.blockNumber?.toString(),
    },
    "operation applied",
  );
  const applied: Applied = {
    ok: true,
    response: { status: 200, headers, body: JSON.stringify({ data }) },
    transaction: row.transactionHash as Hex,
    settledAt: deps.clock.now(),
  };
  // Tried twice: the row can be locked. And if the write is stored but its confirmation lost, a retried request looks for
  // an operation without a response, finds none, and is checked from scratch.
  return keepFirst(deps, row, applied).catch(() => keepFirst(deps, row, applied));
}

/** If a faster identical call caused the refusal, returns the operation that it stored. */
export const orStored = <T>(performed: Promise<T>, findStored: () => Promise<T | undefined>): Promise<T> =>
  performed.catch(async (error: unknown) => {
    const stored = error instanceof AppError && error.status < 500 ? await findStored() : undefined;
    if (stored === undefined) throw error;
    return stored;
  });

/**
 * The result of `respond`, if the views show `target` before and after it: otherwise it could describe another state.
 * Throws 503 `settlement_pending` if they do not, or if `respond` did not find it meanwhile.
 */
export async function respondFrom<T>(
  db: Deps["db"],
  target: IndexedTarget,
  respond: () => Promise<T>,
): Promise<T> {
  if (!(await waitForIndexed(db, target))) throw settlementPending();
  const [made] = await Promise.allSettled([respond()]);
  if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 }))) throw settlementPending();
  if (made.status === "fulfilled") return made.value;
  // The target exists: a restarted indexer can take it back and show it again between the two looks.
  const isGone = made.reason instanceof AppError && made.reason.code === "not_found";
  throw isGone ? settlementPending() : made.reason;
}

export function inclusionOf({ id, blockNumber, blockHash }: OperationRow) {
  if (blockNumber === null || blockHash === null) throw new Error(`The mined operation ${id} has no block`);
  return { blockNumber, blockHash: blockHash };
}

/** 503 for a call whose outcome is not known yet. A retry, byte for byte, continues with the same operation. */
export function settlementPending(): AppError {
  return new AppError("settlement_pending", {
    message:
      "The transaction is pending. Retry the identical request, with the same payment, to get its outcome.",
    hint: "Do not sign a new payment for it.",
    retryAfterSeconds: 2,
  });
}

/** Actions that change their caller's stake. */
const STAKING: ReadonlySet<string> = new Set(["stake", "request-unstake"] satisfies OperationKind[]);

/** Also marks the terms of a created contract as opened. Skips locked rows ("Calls share statements"). */
const keepResponse = prepareShared<{ id: string }>(
  "operation_response",
  sql`
    with free as (
      select o.id, call.n, call.response
      from ${sharedCalls({ id: "bigint", response: "json" })} join app.operation o using (id)
      where o.response is null for update of o skip locked),
    kept as (
      update app.operation o set response = free.response from free where o.id = free.id
      returning o.id, o.kind, o.escrow, free.n),
    opened as (
      update app.terms set opened_at = now() from kept
      where kept.kind = 'create' and terms.id = kept.escrow and terms.opened_at is null)
    select n, id from kept`,
);

/** Of identical calls that end together one stores its response, and the others, or its own retry, replay it. */
async function keepFirst(deps: Deps, row: OperationRow, applied: Applied): Promise<Applied> {
  const { transaction, settledAt } = applied;
  const response = { ...applied.response, transaction, settledAt };
  const [kept] = await keepResponse(deps.db, { id: row.id.toString(), response });
  if (kept !== undefined) return applied;
  // The row was locked, or has a response: the lock waits for whoever changes it.
  const [current] = await deps.db
    .select({ response: operation.response })
    .from(operation)
    .where(eq(operation.id, row.id))
    .for("update");
  if (current?.response) return replayOf(current.response);
  throw settlementPending();
}

function replayOf({ transaction, settledAt, ...stored }: NonNullable<OperationRow["response"]>): Applied {
  const headers = { ...stored.headers, "Idempotent-Replay": "true" };
  return { ok: true, response: { ...stored, headers }, transaction, settledAt };
}

export interface PaidCall<Action extends PaidAction = PaidAction> extends CallIdentity {
  /** Path of the resource that is paid for. */
  path: string;
  headers: HeaderReader;
  /** The token to pay in; the deployment's stablecoin by default. */
  asset?: PaymentAsset;
  /** Everything that can refuse the call before a payment matters; throws 400, 403, 404 or 409. */
  check(): Promise<Action>;
  /** Stores what the database must hold before the caller gets a quote. Throws to refuse it. */
  beforeQuote?(action: Action): Promise<void>;
  /** Stores what the database must hold before the relayer gets the operation. Throws to refuse it. */
  beforeOperation?(action: Action, payment: AcceptedPayment): Promise<void>;
  /** Stores dropped texts again, for an operation that is pending or that refunds a refused call by opening the escrow. */
  restore?(): Promise<void>;
  /** Reads the response after the action was applied on chain. */
  respond(mined: Pick<OperationRow, "escrow">): Promise<Success>;
}

export type PaidAction = Price & PaidOperation;

interface Price {
  /** The escrow; for a stake the registry. */
  payTo: Address;
  amount: bigint;
  /** Names in the quote what is paid for. */
  description: string;
  /** Last second in which the action can succeed on chain, if a deadline limits it. */
  lastSecond?: number;
  /** Refuses a second payment after another one has paid for the same action. */
  alreadyDone(): AppError;
}

/** The operation's kind, with the arguments that only this kind has. */
type PaidOperation =
  | { kind: "create"; terms: EscrowTerms }
  | { kind: "accept" | "dispute" }
  | { kind: "vote"; commitment: Hex }
  | { kind: "stake"; onceKey: string };

/** A payment that can be taken now. */
export interface AcceptedPayment {
  ok: true;
  authorization: AuthorizationArguments;
  /** The money is already at the escrow, so the authorization's expiry no longer matters. */
  isAtEscrow: boolean;
}

/** The outbox entry that takes the payment and performs the action together. */
export function toOperation(
  { deployment }: Deps,
  { call, action, accepted }: { call: PaidCall; action: PaidAction; accepted: AcceptedPayment },
): NewOperation {
  const { caller } = call;
  const { authorization, isAtEscrow: directTransfer } = accepted;
  const facts = { deployment, authorization, requestHash: requestHash(call), ...expiryOf(action, accepted) };
  const onEscrow = { ...facts, escrow: action.payTo, caller };
  switch (action.kind) {
    case "create":
      return createOperation({ ...onEscrow, terms: action.terms });
    case "accept":
      return acceptOperation({ ...onEscrow, directTransfer });
    case "dispute":
      return disputeOperation({ ...onEscrow, directTransfer });
    case "vote":
      return voteOperation({ ...onEscrow, directTransfer, commitment: action.commitment });
    case "stake":
      return stakeOperation({ ...facts, agent: caller, amount: action.amount, onceKey: action.onceKey });
  }
}

/** In seconds: no Date is later (ECMA-262, time values). */
const LAST_TIME = 8_640_000_000_000;

/** The chain refuses the operation after the action's deadline, and after the authorization has expired. */
function expiryOf(
  { lastSecond = Number.POSITIVE_INFINITY }: PaidAction,
  { authorization: { validBefore }, isAtEscrow }: AcceptedPayment,
): { notAfter?: number } {
  const notAfter = isAtEscrow ? lastSecond : Math.min(lastSecond, Number(validBefore) - 1);
  return notAfter < LAST_TIME ? { notAfter } : {};
}

export function assetOf({ deployment }: Deps, { asset }: PaidCall): PaymentAsset {
  return asset ?? deployment.asset;
}

/** Identifies a payment in the outbox. */
export const authorizationKey = (deps: Deps, call: PaidCall, { from, nonce }: PaymentAuthorization) => ({
  asset: assetOf(deps, call).address,
  payer: from,
  nonce,
});
