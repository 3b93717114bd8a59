/** A paid call that is refused, whose money is on chain all the same: adopted where it did what was asked, else returned. */

import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { type Answer, receiptOf, requestHash, respondFrom } from "./answer.js";
import type { PaymentAuthorization } from "./decode.js";
import type { PaidRequest } from "./paid-act.js";
import { findOpening, rescueStrayPayment } from "./stray-payment.js";

interface Refused {
  request: PaidRequest;
  payment: PaymentAuthorization;
  error: AppError;
}

/**
 * Answers a refused call: with success where a stranger opened the caller's escrow with the caller's deposit, else by
 * throwing the refusal, with a hint where its payment is on its way back.
 */
export async function answerRefused(deps: Deps, refused: Refused): Promise<Answer> {
  const { request, payment, error } = refused;
  const inStablecoin = request.asset === undefined;
  if (error.status >= 500 || !inStablecoin || payment.from !== request.caller) throw error;
  const adopted = await adoptOpening(deps, refused);
  if (adopted !== null) return adopted;
  if (!(await rescueStrayPayment(deps, payment, requestHash(request)))) throw error;
  throw new AppError(error.code, {
    ...error.options,
    hint: "Your payment had reached the escrow outside of this call; it is sent back to you.",
  });
}

/**
 * Opening an escrow is open to anybody: where a stranger did it with this call's own payment, the call has succeeded
 * all the same, and its "duplicate" is what it asked for.
 */
async function adoptOpening(deps: Deps, { request, payment, error }: Refused): Promise<Answer | null> {
  if (error.code !== "duplicate_contract") return null;
  const { contractId } = error.options.details as { contractId: Address };
  if (contractId !== payment.to) return null;
  const opening = await findOpening(deps, payment);
  if (opening === null) return null;

  const { transactionHash, ...block } = opening;
  const timeoutMs = deps.config.settlementWaitMs;
  const target = { ...block, escrow: payment.to, timeoutMs };
  const { data, headers } = await respondFrom(deps.db, target, () => request.respond({ escrow: payment.to }));
  const { version, from: payer, value: amount } = payment;
  return {
    status: 200,
    headers: {
      ...headers,
      ...receiptOf(deps, { version, transaction: transactionHash, payer, amount }),
    },
    body: JSON.stringify({ data }),
  };
}
