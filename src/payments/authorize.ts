/** Whether a payment can be taken for an act now: verified, or at the escrow already. */

import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import type { AuthorizationArguments } from "../relayer/operations.js";
import type { PaymentAuthorization } from "./decode.js";
import type { PaidAct, PaidRequest } from "./paid-act.js";
import type { PaymentQuote } from "./quote.js";
import type { Rejection } from "./rejection.js";
import { holds, isStrayPayment, withTokenV } from "./stray-payment.js";
import { verifyPayment } from "./verify.js";

/** `stray`: the money is at the escrow, where an authorization's end makes no difference any more. */
export type Authorized = { ok: true; authorization: AuthorizationArguments; stray: boolean } | Rejection;

/** Throws 503 `unavailable` where the node cannot say. */
export async function authorize(
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
      return (await holds(deps, act.escrow, act.amount)) || isStrayPayment(deps, payment);
    case "credited-by-transfer":
      return isStrayPayment(deps, payment);
    case "impossible":
      return false;
  }
}

/** Until when the chain takes it, by the act's deadline and the authorization's end. */
export function lastSecondOf(
  act: PaidAct,
  { authorization, stray }: { authorization: AuthorizationArguments; stray: boolean },
): { notAfter?: number } {
  const ends = [act.lastSecond ?? Number.MAX_SAFE_INTEGER];
  if (!stray && authorization.validBefore <= BigInt(Number.MAX_SAFE_INTEGER))
    ends.push(Number(authorization.validBefore) - 1);
  const notAfter = Math.min(...ends);
  return notAfter === Number.MAX_SAFE_INTEGER ? {} : { notAfter };
}
