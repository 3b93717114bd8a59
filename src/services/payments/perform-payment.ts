/**
 * The payment flow shared by every paid call: quote, verification, one relayed operation that takes the money and
 * changes the state together, and the same answer for every repetition (docs/decisions.md 9 to 18).
 */
import { and, eq, isNotNull } from "drizzle-orm";
import { meaningOf } from "../../chain/errors.js";
import { waitForIndexed } from "../../db/onchain.js";
import { operation } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import { type DecodedPayment, decodePayment, type PaymentAuthorization } from "../../payments/decode.js";
import {
  answerVersion,
  createQuote,
  type HeaderReader,
  type PaymentAsset,
  type PaymentQuote,
  paymentRequired,
} from "../../payments/quote.js";
import { receiptHeaders } from "../../payments/receipt.js";
import type { Rejection } from "../../payments/rejection.js";
import { verifyPayment } from "../../payments/verify.js";
import type { Address, Hex } from "../../protocol/types.js";
import type { AuthorizationArguments, NewOperation } from "../../relayer/operations.js";
import { enqueue, findByAuthorization, type OperationRow, requireRoom } from "../../relayer/outbox.js";
import type { Deps } from "../deps.js";
import {
  type Answer,
  type CallIdentity,
  conclude,
  requestHash,
  type Success,
  settlementPending,
} from "./answer.js";
import { findOpening, holds, isStrayPayment, rescueStrayPayment, withTokenV } from "./stray-payment.js";

export interface PaidRequest extends CallIdentity {
  headers: HeaderReader;
  /** What is paid in; the deployment's stablecoin where absent. */
  asset?: PaymentAsset;
  /** Everything that can refuse the call before money is talked about; throws 404, 403, 409... */
  prepare(): Promise<PaidAct>;
  /** The answer to what was mined for this call; reads what is there now. */
  respond(mined: Pick<OperationRow, "escrow">): Promise<Success>;
}

export interface PaidAct {
  /** Where the money goes: the escrow, or the registry for a stake. */
  escrow: Address;
  amount: bigint;
  resourceUrl: string;
  /** What is paid for, as the quote names it. */
  description: string;
  /** Runs before every 402; may refuse with 429 or 409. */
  beforeQuote?(): Promise<void>;
  /** Runs before the operation is stored: what must be in the database before anything is sent. */
  beforeSending?(): Promise<void>;
  operation(facts: {
    authorization: AuthorizationArguments;
    requestHash: string;
    notAfter?: number;
  }): NewOperation;
  /**
   * An escrow that is not open credits any money at its address; a live one only what was seen to come from the payer.
   * The registry can get none but by its own call.
   */
  strayMoney: "credited-by-balance" | "credited-by-transfer" | "impossible";
  /** Last second in which the call can succeed on chain, where a deadline limits it. */
  lastSecond?: number;
  /** The refusal of a second payment for an act that another payment has already done. */
  alreadyDone(): AppError;
}

/** Another payment of the same caller may fail just while ours waits for it. */
const ENQUEUE_TRIES = 3;

/** Carries a paid call out, or answers 402 with its quote. Throws AppError for every other refusal. */
export async function performPayment(deps: Deps, request: PaidRequest): Promise<Answer> {
  const decoded = decodePayment(request.headers);
  try {
    return await carryOut(deps, request, decoded);
  } catch (error) {
    const adopted = decoded?.ok
      ? await adoptOpening(deps, { request, payment: decoded.payment, error })
      : null;
    if (adopted === null) throw error;
    return adopted;
  }
}

async function carryOut(deps: Deps, request: PaidRequest, decoded: DecodedPayment | null): Promise<Answer> {
  const hash = requestHash(request);
  const payment = decoded?.ok ? decoded.payment : null;

  const earlier = payment && (await findByAuthorization(deps.db, authorizationKey(deps, request, payment)));
  if (payment && earlier) return resume(deps, { request, payment, hash, earlier });

  const act = await prepareOrRescue(deps, { request, payment, hash });
  const quote = createQuote({
    payTo: act.escrow,
    amount: act.amount,
    resourceUrl: act.resourceUrl,
    description: act.description,
    asset: assetOf(deps, request),
    chainId: deps.deployment.chainId,
  });
  if (payment === null) return quoted(deps, { request, act, quote, rejection: rejectionOf(decoded) });

  const verified = await authorize(deps, { request, payment, act, quote });
  if (!verified.ok) {
    await refuseFreshQuote(deps, { request, payment, rejection: verified });
    return quoted(deps, { request, act, quote, rejection: verified });
  }

  await act.beforeSending?.();
  const fresh = act.operation({
    authorization: verified.authorization,
    requestHash: hash,
    ...lastSecondOf(act, verified),
  });
  for (let attempt = 0; attempt < ENQUEUE_TRIES; attempt++) {
    const stored = await enqueue(deps.db, fresh);
    if (!stored.existing || isFor(stored.operation, payment)) {
      if (stored.existing) return resume(deps, { request, payment, hash, earlier: stored.operation });
      return finish(deps, { request, payment, stored: stored.operation, act, quote });
    }
    const other = await deps.outbox.waitFor(stored.operation.id, { timeoutMs: deps.config.settlementWaitMs });
    if (other === null) throw settlementPending();
    if (other.state !== "rejected") throw act.alreadyDone();
  }
  throw settlementPending();
}

/**
 * Opening an escrow is open to anybody: where a stranger did it with this call's own authorization, the call has
 * succeeded all the same, and its "duplicate" is what it asked for.
 */
async function adoptOpening(
  deps: Deps,
  { request, payment, error }: { request: PaidRequest; payment: PaymentAuthorization; error: unknown },
): Promise<Answer | null> {
  if (!(error instanceof AppError) || error.code !== "duplicate_contract") return null;
  const { contractId } = error.options.details as { contractId: Address };
  if (contractId !== payment.to || request.caller !== payment.from) return null;
  const opening = await findOpening(deps, payment);
  if (opening === null) return null;

  const timeoutMs = deps.config.settlementWaitMs;
  if (!(await waitForIndexed(deps.db, { ...opening, escrow: payment.to, timeoutMs })))
    throw settlementPending();
  const { data, headers } = await request.respond({ escrow: payment.to });
  return {
    status: 200,
    headers: { ...headers, ...receiptOf(deps, payment, opening.transactionHash) },
    body: JSON.stringify({ data }),
  };
}

/** A repeated call picks its operation up wherever it is; the same authorization with other bytes is refused. */
async function resume(
  deps: Deps,
  input: { request: PaidRequest; payment: PaymentAuthorization; hash: string; earlier: OperationRow },
): Promise<Answer> {
  const { request, payment, hash, earlier } = input;
  if (earlier.requestHash !== hash) {
    throw new AppError("conflict", {
      message:
        "This payment authorization belongs to another call (other path or other body). Sign a new one for this call, or repeat the first call byte for byte.",
    });
  }
  return finish(deps, { request, payment, stored: earlier, act: null, quote: null });
}

async function finish(
  deps: Deps,
  input: {
    request: PaidRequest;
    payment: PaymentAuthorization;
    stored: OperationRow;
    act: PaidAct | null;
    quote: PaymentQuote | null;
  },
): Promise<Answer> {
  const { request, payment, stored } = input;
  const conclusion = await conclude(deps, stored, request.respond);
  if (!conclusion.ok) return refused(deps, { ...input, rejected: conclusion.rejected });

  const receipt = receiptOf(deps, payment, conclusion.operation.transactionHash as Hex);
  return { ...conclusion.answer, headers: { ...conclusion.answer.headers, ...receipt } };
}

/** Why the chain, or the relayer's simulation of it, refused. A payment that failed is examined once more. */
async function refused(
  deps: Deps,
  input: {
    request: PaidRequest;
    payment: PaymentAuthorization;
    rejected: OperationRow;
    act: PaidAct | null;
    quote: PaymentQuote | null;
  },
): Promise<Answer> {
  const { request, payment, rejected } = input;
  // The checks know best why: they see the state that made the operation fail, once the index shows it.
  const act = input.act ?? (await request.prepare());
  const fate =
    rejected.publishedAt !== null
      ? " Your payment was not taken, but its authorization was published: cancel it at the token, or do not sign another before it expires."
      : " Your payment was not taken.";
  deps.logger.info(
    { operation: rejected.id.toString(), kind: rejected.kind, reason: rejected.reason },
    "paid operation rejected",
  );
  const meaning = PAYMENT_FAULTS.has(rejected.reason ?? "") ? null : meaningOf(rejected.reason ?? "");
  if (meaning !== null) {
    if (rejected.reason === "WrongStatus" && rejected.kind === "create") throw act.alreadyDone();
    throw new AppError(meaning.code, {
      message: `${meaning.message}.${fate}`,
      details: { reason: rejected.reason },
    });
  }

  const { quote } = input;
  // A deadline may have passed, or another payment have won, since the checks.
  await request.prepare();
  const verified = quote && (await authorize(deps, { request, payment, act, quote }));
  if (quote && verified && !verified.ok) {
    await refuseFreshQuote(deps, { request, payment, rejection: verified });
    return quoted(deps, { request, act, quote, rejection: verified });
  }
  throw new AppError("unavailable", {
    message: `The operation was not carried out.${fate} Repeat the identical call.`,
    retryable: true,
    retryAfterSeconds: 2,
  });
}

/** Reasons that say only that the money could not be taken, or that the authorization's time was over. */
const PAYMENT_FAULTS = new Set(["PaymentFailed", "Expired"]);

type Authorized = { ok: true; authorization: AuthorizationArguments; stray: boolean } | Rejection;

async function authorize(
  deps: Deps,
  input: { request: PaidRequest; payment: PaymentAuthorization; act: PaidAct; quote: PaymentQuote },
): Promise<Authorized> {
  const { request, payment, act, quote } = input;
  const result = await verifyPayment({
    publicClient: deps.publicClient,
    payment,
    quote,
    payer: request.caller,
    now: deps.clock.now(),
  });
  if (result.ok) return { ok: true, authorization: result.payment, stray: false };
  if (result.reason === "unavailable") {
    const { message, cause } = result;
    throw new AppError("unavailable", { message, retryable: true, retryAfterSeconds: 2, cause });
  }
  if (result.reason !== "authorization_used") return result;

  if (!(await isCreditable(deps, act, payment))) return result;
  return { ok: true, authorization: { ...payment, signature: withTokenV(payment.signature) }, stray: true };
}

async function isCreditable(deps: Deps, act: PaidAct, payment: PaymentAuthorization): Promise<boolean> {
  switch (act.strayMoney) {
    case "credited-by-balance":
      return holds(deps, act.escrow, act.amount);
    case "credited-by-transfer":
      return isStrayPayment(deps, payment);
    case "impossible":
      return false;
  }
}

/** 402 with the quote; the reason where a payment was refused. */
async function quoted(
  deps: Deps,
  input: { request: PaidRequest; act: PaidAct; quote: PaymentQuote; rejection: Rejection | null },
): Promise<Answer> {
  const { request, act, quote, rejection } = input;
  await act.beforeQuote?.();
  await requireRoom(deps.db);
  const answer = paymentRequired({
    quote,
    version: answerVersion(request.headers, { v1Bodies: deps.config.x402V1Bodies }),
    ...(rejection && { rejection }),
  });
  return { status: 402, headers: answer.headers, body: JSON.stringify(answer.body) };
}

/** Checks refuse before money is looked at; but money that somebody already sent to the escrow is not left there. */
async function prepareOrRescue(
  deps: Deps,
  input: { request: PaidRequest; payment: PaymentAuthorization | null; hash: string },
): Promise<PaidAct> {
  const { request, payment, hash } = input;
  try {
    return await request.prepare();
  } catch (error) {
    if (!(error instanceof AppError) || payment === null || payment.from !== request.caller) throw error;
    if (!(await rescueStrayPayment(deps, payment, hash))) throw error;
    throw new AppError(error.code, {
      ...error.options,
      hint: "Your payment had reached the escrow outside of this call; it is being sent back to you.",
    });
  }
}

/** An authorization that we published may still be used by anybody: no second one is asked for while it can. */
async function refuseFreshQuote(
  deps: Deps,
  {
    request,
    payment,
    rejection,
  }: { request: PaidRequest; payment: PaymentAuthorization; rejection: Rejection },
): Promise<void> {
  // By the newest block, not by the clock that runs on between blocks: the next one may still take it.
  const expired = payment.validBefore <= BigInt(deps.clock.head()?.timestamp ?? 0);
  if (rejection.reason === "authorization_used" || expired) return;
  const key = authorizationKey(deps, request, payment);
  const published = await deps.db
    .select({ id: operation.id })
    .from(operation)
    .where(
      and(
        eq(operation.asset, key.asset),
        eq(operation.payer, key.payer),
        eq(operation.nonce, key.nonce),
        isNotNull(operation.publishedAt),
      ),
    )
    .limit(1);
  if (published.length === 0) return;
  throw new AppError("conflict", {
    message: `This authorization was published in a transaction that did not take it, and cannot be taken now: ${rejection.message} It can be used until ${payment.validBefore}; cancel it at the token before you sign another.`,
    details: { reason: rejection.reason },
  });
}

function receiptOf({ deployment }: Deps, { version, from, value }: PaymentAuthorization, transaction: Hex) {
  return receiptHeaders({
    version,
    chainId: deployment.chainId,
    outcome: { success: true, transaction, payer: from, amount: value },
  });
}

function rejectionOf(decoded: DecodedPayment | null): Rejection | null {
  return decoded === null || decoded.ok ? null : decoded;
}

function assetOf({ deployment }: Deps, { asset }: PaidRequest): PaymentAsset {
  return asset ?? deployment.asset;
}

function authorizationKey(deps: Deps, request: PaidRequest, { from, nonce }: PaymentAuthorization) {
  return { asset: assetOf(deps, request).address, payer: from, nonce };
}

function isFor(stored: OperationRow, payment: PaymentAuthorization): boolean {
  return stored.payer === payment.from && stored.nonce === payment.nonce;
}

/** Money that is at the escrow already does not expire with its authorization. */
function lastSecondOf(
  act: PaidAct,
  { authorization, stray }: { authorization: AuthorizationArguments; stray: boolean },
) {
  const ends = [act.lastSecond ?? Number.MAX_SAFE_INTEGER];
  if (!stray && authorization.validBefore <= BigInt(Number.MAX_SAFE_INTEGER))
    ends.push(Number(authorization.validBefore) - 1);
  const notAfter = Math.min(...ends);
  return notAfter === Number.MAX_SAFE_INTEGER ? {} : { notAfter };
}
