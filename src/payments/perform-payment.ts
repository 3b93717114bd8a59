/**
 * The payment flow shared by every paid call: quote, verification, one relayed operation that takes the money and
 * changes the state together, and the same answer for every repetition (docs/rules.md 9 to 18).
 */
import { and, desc, eq, isNotNull, isNull, ne, or } from "drizzle-orm";
import { meaningOf } from "../chain/errors.js";
import { operation } from "../db/schema.js";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { enqueue, findByAuthorization, type OperationRow, requireRoom } from "../relayer/outbox.js";
import { type Answer, conclude, receiptOf, requestHash, settlementPending } from "./answer.js";
import { authorize, lastSecondOf } from "./authorize.js";
import { type DecodedPayment, decodePayment, type PaymentAuthorization } from "./decode.js";
import { answerRefused } from "./outside-money.js";
import { assetOf, authorizationKey, type PaidAct, type PaidRequest } from "./paid-act.js";
import { answerVersion, createQuote, type PaymentQuote, paymentRequired } from "./quote.js";
import { refuseFailing } from "./refuse-failing.js";
import type { Rejection } from "./rejection.js";

/** Another payment of the same caller may fail just while ours waits for it. */
const ENQUEUE_TRIES = 3;

/** Carries a paid call out, or answers 402 with its quote. Throws AppError for every other refusal. */
export async function performPayment(deps: Deps, request: PaidRequest): Promise<Answer> {
  const decoded = decodePayment(request.headers);
  try {
    return await carryOut(deps, request, decoded);
  } catch (error) {
    if (decoded?.ok !== true || !(error instanceof AppError)) throw error;
    return answerRefused(deps, { request, payment: decoded.payment, error });
  }
}

async function carryOut(deps: Deps, request: PaidRequest, decoded: DecodedPayment | null): Promise<Answer> {
  const hash = requestHash(request);
  const payment = decoded?.ok ? decoded.payment : null;

  const earlier = payment && (await findByAuthorization(deps.db, authorizationKey(deps, request, payment)));
  if (payment && earlier) return resume(deps, { request, payment, hash, earlier });

  const act = await request.prepare();
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

  await refuseFailing(deps.db, request.caller);
  await act.beforeSending?.();
  const fresh = act.operation({
    authorization: verified.authorization,
    stray: verified.stray,
    requestHash: hash,
    ...lastSecondOf(act, verified),
  });
  for (let attempt = 0; attempt < ENQUEUE_TRIES; attempt++) {
    const stored = await enqueue(deps.db, fresh);
    if (!stored.existing || isFor(stored.operation, payment)) {
      if (stored.existing) return resume(deps, { request, payment, hash, earlier: stored.operation });
      deps.logger.info(
        { operation: stored.operation.id.toString(), kind: act.kind, escrow: act.escrow },
        "operation stored",
      );
      return finish(deps, { request, payment, stored: stored.operation, act, quote });
    }
    const other = await deps.outbox.waitFor(stored.operation.id, { timeoutMs: deps.config.settlementWaitMs });
    if (other === null) break;
    if (other.state !== "rejected") throw act.alreadyDone();
  }
  throw new AppError("conflict", {
    message:
      "Another payment of yours for the same act is on its way; this one was not taken. Repeat the call with that one to get its outcome.",
  });
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

  const { answer, transaction } = conclusion;
  const { version, from: payer, value: amount } = payment;
  return {
    ...answer,
    headers: { ...answer.headers, ...receiptOf(deps, { version, transaction, payer, amount }) },
  };
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
  const isStray = verified?.ok === true && verified.stray;
  throw new AppError("unavailable", {
    message: `The operation was not carried out.${isStray ? " Your payment reached the escrow outside of it." : fate} Repeat the identical call.`,
    retryable: true,
    retryAfterSeconds: 2,
  });
}

/** Reasons that say only that the money could not be taken, or that the authorization's time was over. */
const PAYMENT_FAULTS = new Set(["PaymentFailed", "Expired"]);

/** 402 with the quote, and the reason where a payment was refused; unless the caller has paid for this act already. */
async function quoted(
  deps: Deps,
  input: { request: PaidRequest; act: PaidAct; quote: PaymentQuote; rejection: Rejection | null },
): Promise<Answer> {
  const { request, act, quote, rejection } = input;
  const version = answerVersion(request.headers, { v1Bodies: deps.config.x402V1Bodies });
  const unanswered = await findUnanswered(deps, request, act);
  if (unanswered !== undefined) {
    if (unanswered.state !== "mined" && unanswered.state !== "final") throw settlementPending();
    const conclusion = await conclude(deps, unanswered, request.respond);
    if (!conclusion.ok) throw settlementPending();
    const { answer, transaction } = conclusion;
    const receipt = receiptOf(deps, { version, transaction, payer: request.caller, amount: act.amount });
    return { ...answer, headers: { ...answer.headers, ...receipt } };
  }
  await act.beforeQuote?.();
  await requireRoom(deps.db);
  const answer = paymentRequired({ quote, version, ...(rejection && { rejection }) });
  return { status: 402, headers: answer.headers, body: JSON.stringify(answer.body) };
}

/** The caller's own paid operation for this act whose outcome it has not been told: a second payment would be too many. */
async function findUnanswered(
  { db }: Deps,
  request: PaidRequest,
  { kind, escrow }: PaidAct,
): Promise<OperationRow | undefined> {
  const [row] = await db
    .select()
    .from(operation)
    .where(
      and(
        eq(operation.caller, request.caller),
        eq(operation.kind, kind),
        or(eq(operation.requestHash, requestHash(request)), eq(operation.escrow, escrow)),
        ne(operation.state, "rejected"),
        isNotNull(operation.nonce),
        isNull(operation.response),
      ),
    )
    .orderBy(desc(operation.id))
    .limit(1);
  return row;
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

function rejectionOf(decoded: DecodedPayment | null): Rejection | null {
  return decoded === null || decoded.ok ? null : decoded;
}

function isFor(stored: OperationRow, payment: PaymentAuthorization): boolean {
  return stored.payer === payment.from && stored.nonce === payment.nonce;
}
