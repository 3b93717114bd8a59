/**
 * A paid call, from the payment header to the response (docs/rules.md 9 to 18). One relayed operation takes the money
 * and changes the state together; every repetition of the call gets the same response.
 */
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, isNotNull, isNull } from "drizzle-orm";
import { meaningOf } from "../chain/errors.js";
import { APPLIED, operation, terms } from "../db/schema.js";
import type { Deps } from "../deps.js";
import { AppError, conflict, unavailable } from "../errors.js";
import { PAYMENT_USED } from "../relayer/failures.js";
import { admitCredit, admitPaid, type RelayingState, readOutboxState } from "../relayer/limits.js";
import type { NewOperation } from "../relayer/operations.js";
import {
  enqueue,
  findByAuthorization,
  type OperationRow,
  queueFull,
  readOperation,
} from "../relayer/outbox.js";
import { requireUnusable } from "./authorization-use.js";
import { findOpening, holdsAtLeast, isOwedDirectTransfer, refundDirectTransfer } from "./direct-transfer.js";
import {
  type AcceptedPayment,
  type Applied,
  assetOf,
  authorizationKey,
  awaitOutcome,
  orStored,
  type PaidAction,
  type PaidCall,
  requestHash,
  respondFrom,
  type StoredResponse,
  settlementPending,
  toOperation,
} from "./relayed-call.js";
import { inTokenForm, verifyPayment } from "./verify-payment.js";
import {
  decodePayment,
  offerExtension,
  type PaymentAuthorization,
  type PaymentQuote,
  paymentRequired,
  type Rejection,
  receiptHeaders,
  responseVersion,
} from "./x402.js";

/** A competing payment of the same caller can fail while ours waits for it. */
const ENQUEUE_TRIES = 3;

/** Performs a paid call, or responds 402 with its quote. Throws AppError for every other refusal. */
export async function performPaidCall<Action extends PaidAction>(
  deps: Deps,
  call: PaidCall<Action>,
): Promise<StoredResponse> {
  const decoded = decodePayment(call.headers);
  if (decoded === null || !decoded.ok) {
    const find = async () => findOffer(deps, { call, action: await call.check(), rejection: decoded });
    return respondWith(deps, call, await deps.inQuoteTurn(find));
  }
  const { payment } = decoded;
  try {
    return await payOnce(deps, { call, payment });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return recoverDirectTransfer(deps, { call, payment, error });
  }
}

/** Pays, or resumes the operation that an identical call stored, before this one or while this one was checked. */
async function payOnce(
  deps: Deps,
  { call, payment }: { call: PaidCall; payment: PaymentAuthorization },
): Promise<StoredResponse> {
  const authorization = authorizationKey(deps, call, payment);
  const { earlier, ...relaying } = await readOutboxState(deps.db, {
    caller: call.caller,
    gasPolicy: deps.config.gasPolicy,
    authorization,
  });
  // Refused as another address's payment, even if its operation is known here.
  if (authorization.payer !== call.caller) return pay(deps, { call, payment, relaying });
  if (earlier !== null)
    return resume(deps, { call, payment, earlier: await readOperation(deps.db, earlier) });

  const resumeStored = async () => {
    const stored = await findByAuthorization(deps.db, authorization);
    return stored && resume(deps, { call, payment, earlier: stored });
  };
  const paid = await orStored(pay(deps, { call, payment, relaying }), resumeStored);
  return paid.status === 402 ? ((await resumeStored()) ?? paid) : paid;
}

/** Checks, verifies, stores, waits and responds: a payment that is seen for the first time. */
async function pay(
  deps: Deps,
  { call, payment, relaying }: { call: PaidCall; payment: PaymentAuthorization; relaying: RelayingState },
): Promise<StoredResponse> {
  const action = await call.check();
  const accepted = await acceptPayment(deps, { call, payment, action });
  if (!accepted.ok) return refusePayment(deps, { call, payment, action, rejection: accepted });

  // A refused credit can still be refunded: by then the service has to know the terms.
  if (accepted.isAtEscrow) await call.beforeOperation?.(action, accepted);
  const relayed = { caller: call.caller, kind: action.kind };
  const gasPolicy = accepted.isAtEscrow
    ? await admitCredit(deps, relayed)
    : await admitPaid(deps, relayed, relaying);
  if (!accepted.isAtEscrow) await call.beforeOperation?.(action, accepted);
  const fresh = { ...toOperation(deps, { call, action, accepted }), gasPolicy };
  const stored = await storePayment(deps, { action, fresh });
  if (stored.existing) return resume(deps, { call, payment, earlier: stored.operation });

  const outcome = await awaitOutcome(deps, stored.operation, call.respond, { isNew: true });
  if (outcome.ok) return withReceipt(deps, { call, payment, ...outcome });

  const { rejected } = outcome;
  logRejected(deps, rejected);
  const refusal = refusalOnChain(rejected, action);
  if (refusal !== null) throw refusal;
  // The payment failed: since the checks a deadline can have passed, or another payment have won.
  const checkedAgain = await call.check();
  const verdict = await acceptPayment(deps, { call, payment, action: checkedAgain });
  if (!verdict.ok) return refusePayment(deps, { call, payment, action: checkedAgain, rejection: verdict });
  throw notPerformed(rejected, verdict);
}

/** Continues with the operation that this payment was stored in, whatever its state. */
async function resume(
  deps: Deps,
  { call, payment, earlier }: { call: PaidCall; payment: PaymentAuthorization; earlier: OperationRow },
): Promise<StoredResponse> {
  if (earlier.requestHash !== requestHash(call)) {
    throw conflict(
      "This payment authorization belongs to a different request (another path or body). Sign a new one for this request, or retry the first request byte for byte.",
    );
  }
  // The request that stored it can have ended before it did so.
  if (earlier.response === null) await call.restore?.();
  const outcome = await awaitOutcome(deps, earlier, call.respond);
  if (outcome.ok) return withReceipt(deps, { call, payment, ...outcome });

  const { rejected } = outcome;
  // The checks give the best reason: once indexed, they see the state that made the operation fail.
  const action = await call.check();
  logRejected(deps, rejected);
  throw refusalOnChain(rejected, action) ?? notPerformed(rejected);
}

/** A 402, or the operation that the caller has already paid this amount for. */
type Offer = StoredResponse | { unreported: string; action: PaidAction };

/** The quote, and the reason if a payment was refused; unless the caller has already paid for this action. */
async function findOffer(
  deps: Deps,
  { call, action, rejection }: { call: PaidCall; action: PaidAction; rejection: Rejection | null },
): Promise<Offer> {
  const { kind, payTo: escrow } = action;
  const state = await readOutboxState(deps.db, {
    caller: call.caller,
    gasPolicy: deps.config.gasPolicy,
    action: { kind, requestHash: requestHash(call), escrow, headTime: deps.clock.head()?.timestamp ?? 0 },
  });
  if (state.unreported !== null) return { unreported: state.unreported, action };
  const ofCaller = { payer: call.caller, token: assetOf(deps, call).address };
  for (const published of state.published ?? []) await requireUnusable(deps, { ...ofCaller, ...published });
  await admitPaid(deps, { caller: call.caller, kind }, state);
  if (!state.hasRoom) throw queueFull();
  await call.beforeQuote?.(action);
  const quote = quoteOf(deps, call, action);
  const extensions = offerExtension(deps.config, quote, deps.clock.now());
  const version = versionOf(deps, call);
  const { headers, body } = paymentRequired({ quote, version, extensions, ...(rejection && { rejection }) });
  return { status: 402, headers, body: JSON.stringify(body) };
}

const versionOf = ({ config }: Deps, { headers }: PaidCall) =>
  responseVersion(headers, { v1Bodies: config.x402V1Bodies });

async function respondWith(deps: Deps, call: PaidCall, offer: Offer): Promise<StoredResponse> {
  if ("status" in offer) return offer;
  const unreported = await readOperation(deps.db, offer.unreported);
  if (!APPLIED.includes(unreported.state)) throw settlementPending();
  // Of all actions on an escrow, only votes can differ.
  if (unreported.kind === "vote" && unreported.requestHash !== requestHash(call))
    throw offer.action.alreadyDone();
  const outcome = await awaitOutcome(deps, unreported, call.respond);
  if (!outcome.ok) throw settlementPending();
  const payment = { version: versionOf(deps, call), from: call.caller, value: offer.action.amount };
  return withReceipt(deps, { call, payment, ...outcome });
}

/** Verifies a payment for the action, or finds its money at the escrow. Throws 503 `unavailable` if the node fails. */
async function acceptPayment(
  deps: Deps,
  { call, payment, action }: { call: PaidCall; payment: PaymentAuthorization; action: PaidAction },
): Promise<AcceptedPayment | Rejection> {
  const result = await verifyPayment({
    publicClient: deps.publicClient,
    payment,
    quote: quoteOf(deps, call, action),
    payer: call.caller,
    now: deps.clock.now(),
    isReceivable: action.kind !== "stake",
  });
  if (result.ok) return { ok: true, authorization: result.payment, isAtEscrow: false };
  if (result.reason !== "authorization_used") return result;

  if (!(await isCreditable(deps, action, payment))) return result;
  return { ok: true, authorization: inTokenForm(payment, deps.deployment), isAtEscrow: true };
}

/**
 * Whether money that reached the payee otherwise can pay for the call. Before its opening, an escrow credits any money
 * at its address, if a deposit is due; afterwards only the transfer of this authorization. The registry credits none.
 */
async function isCreditable(deps: Deps, action: PaidAction, payment: PaymentAuthorization): Promise<boolean> {
  const isNew = action.kind === "create";
  if (action.kind === "stake" || (isNew && action.amount === 0n)) return false;
  if (isNew && (await holdsAtLeast(deps, action.payTo, action.amount))) return true;
  return isOwedDirectTransfer(deps, payment, "credit");
}

/** 402 with the reason; 409 while an authorization that we published can still be used by anyone. */
async function refusePayment(
  deps: Deps,
  input: { call: PaidCall; payment: PaymentAuthorization; action: PaidAction; rejection: Rejection },
): Promise<StoredResponse> {
  const { call, payment, rejection } = input;
  // By the newest block, not by the clock that advances between blocks: the next block can still take it.
  const expired = payment.validBefore <= BigInt(deps.clock.head()?.timestamp ?? 0);
  const isOwnUnused = rejection.reason !== "authorization_used" && rejection.reason !== "payer_mismatch";
  if (isOwnUnused && !expired && (await isPublished(deps, call, payment))) {
    throw conflict(
      `This authorization was published in a transaction that did not use it, so anyone can still use it, but this call cannot: ${rejection.message} It stays valid until Unix time ${payment.validBefore}; cancel it at the token before you sign another.`,
      { reason: rejection.reason },
    );
  }
  // Without a turn: its payer has waited long enough.
  return respondWith(deps, call, await findOffer(deps, input));
}

async function isPublished(deps: Deps, call: PaidCall, payment: PaymentAuthorization): Promise<boolean> {
  const { asset, payer, nonce } = authorizationKey(deps, call, payment);
  const isSame = and(eq(operation.asset, asset), eq(operation.payer, payer), eq(operation.nonce, nonce));
  return (await deps.db.$count(operation, and(isSame, isNotNull(operation.publishedAt)))) > 0;
}

/** Stores the operation, unless the caller's other payment for the action has succeeded (409) or is pending (409). */
async function storePayment(
  deps: Deps,
  { action, fresh }: { action: PaidAction; fresh: NewOperation },
): Promise<{ operation: OperationRow; existing: boolean }> {
  for (let attempt = 0; attempt < ENQUEUE_TRIES; attempt++) {
    const stored = await enqueue(deps.db, fresh);
    const { id, payer, nonce } = stored.operation;
    if (!stored.existing) {
      const { kind, payTo: escrow } = action;
      deps.logger.info({ operation: id.toString(), kind, escrow }, "operation stored");
      return stored;
    }
    if (payer === fresh.payment?.payer && nonce === fresh.payment.nonce) return stored;
    const other = await deps.outbox.waitFor(id, { timeoutMs: deps.config.settlementWaitMs });
    if (other === null) break;
    if (other.state !== "rejected") throw action.alreadyDone();
  }
  throw conflict(
    "Another payment for this action is pending; this one was not used. Retry with the other payment to get its outcome.",
  );
}

/** Reasons that say only that the money could not be taken, or that the authorization has expired. */
const PAYMENT_FAULTS = new Set(["PaymentFailed", PAYMENT_USED, "Expired"]);

/** The chain's reason, or that of the relayer's simulation; null if the payment was at fault. */
function refusalOnChain(rejected: OperationRow, action: PaidAction): AppError | null {
  const { reason, kind } = rejected;
  const meaning = PAYMENT_FAULTS.has(reason ?? "") ? null : meaningOf(reason ?? "");
  if (meaning === null) return null;
  if (reason === "WrongStatus" && kind === "create") return action.alreadyDone();
  return new AppError(meaning.code, {
    message: `${meaning.message}.${paymentFate(rejected)}`,
    details: { reason },
  });
}

function notPerformed(rejected: OperationRow, accepted?: AcceptedPayment): AppError {
  const fate = accepted?.isAtEscrow
    ? " Your payment reached the escrow by a direct transfer."
    : paymentFate(rejected);
  return unavailable(`The operation was not performed.${fate} Retry the identical request.`);
}

function paymentFate({ publishedAt }: OperationRow): string {
  return publishedAt === null
    ? " Your payment was not used."
    : " Your payment was not used, but its authorization was published: cancel it at the token, or do not sign another before it expires.";
}

const logRejected = ({ logger }: Deps, { id, kind, reason }: OperationRow): void =>
  logger.info({ operation: id.toString(), kind, reason }, "paid operation rejected");

/**
 * Handles a refused call whose money is on chain anyway: success if someone else opened the caller's escrow with the
 * caller's deposit; otherwise throws the refusal, with a hint if the payment is being refunded.
 */
async function recoverDirectTransfer(
  deps: Deps,
  refused: { call: PaidCall; payment: PaymentAuthorization; error: AppError },
): Promise<StoredResponse> {
  const { call, payment, error } = refused;
  const inStablecoin = call.asset === undefined;
  // A call that is refused for its gas is performed later: its money stays at the escrow until then.
  if (error.status >= 500 || error.code === "rate_limited" || !inStablecoin || payment.from !== call.caller)
    throw error;
  const adopted = await adoptOpening(deps, refused);
  if (adopted !== null) return adopted;
  if (!(await refundDirectTransfer(deps, payment, call))) throw error;
  await call.restore?.();
  throw new AppError(error.code, {
    ...error.options,
    hint: "Your payment reached the escrow by a direct transfer; it is being refunded to you.",
  });
}

/** Anyone can open an escrow. If someone did so with this call's payment, "duplicate" is what the call asked for. */
async function adoptOpening(
  deps: Deps,
  { call, payment, error }: { call: PaidCall; payment: PaymentAuthorization; error: AppError },
): Promise<StoredResponse | null> {
  if (error.code !== "duplicate_contract") return null;
  const escrow = payment.to;
  const { contractId } = error.options.details as { contractId: Address };
  if (contractId !== escrow) return null;
  const opening = await findOpening(deps, payment);
  if (opening === null) return null;
  const unmarked = and(eq(terms.id, escrow), isNull(terms.openedAt));
  await deps.db.update(terms).set({ openedAt: new Date() }).where(unmarked);

  const { transactionHash: transaction, ...block } = opening;
  const target = { ...block, escrow, timeoutMs: deps.config.settlementWaitMs };
  const { data, headers = {} } = await respondFrom(deps.db, target, () => call.respond({ escrow }));
  const response: StoredResponse = { status: 200, headers, body: JSON.stringify({ data }) };
  return withReceipt(deps, { call, payment, response, transaction, settledAt: deps.clock.now() });
}

/** The receipt is not stored with the response, because a replay can use the other x402 version. */
function withReceipt(
  { deployment, config }: Deps,
  settled: Omit<Applied, "ok"> & {
    call: PaidCall;
    payment: Pick<PaymentAuthorization, "version" | "from" | "value">;
  },
): StoredResponse {
  const { call, response, transaction, settledAt, payment } = settled;
  const { version, from: payer, value: amount } = payment;
  const { chainId } = deployment;
  const paid = { version, chainId, resourceUrl: resourceOf({ config }, call), transaction, payer, amount };
  const receipt = receiptHeaders(config, { ...paid, settledAt });
  return { ...response, headers: { ...response.headers, ...receipt } };
}

function quoteOf(deps: Deps, call: PaidCall, action: PaidAction): PaymentQuote {
  const { payTo, amount, description } = action;
  const { chainId } = deps.deployment;
  const resourceUrl = resourceOf(deps, call);
  return { payTo, amount, resourceUrl, description, asset: assetOf(deps, call), chainId };
}

const resourceOf = ({ config }: Pick<Deps, "config">, { path }: PaidCall): string =>
  `${config.baseUrl}${path}`;
