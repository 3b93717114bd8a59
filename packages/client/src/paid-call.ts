/** A request that can cost money: quote, checks, limits, signature, then identical retries until the outcome is known. */
import { formatDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { ConnectionError, OutcomeUnknown, PaymentRejected, ServiceError } from "./errors.js";
import type { Answer, Http, Request } from "./http.js";
import { type Expected, type QuotedPayment, readQuote, requireExpected, signPayment } from "./payment.js";
import type { Signer } from "./sign-in.js";
import type { Budget, PlannedPayment } from "./spending.js";
import type { PinnedNetwork } from "./types.js";

export interface Payer {
  http: Http;
  signer: Signer;
  network: PinnedNetwork;
  budget: Budget;
  /** The chain's time in seconds. */
  now(): Promise<number>;
  /** Called before the payment is signed. Throw to refuse the payment. */
  beforePayment?: ((payment: PlannedPayment) => void | Promise<void>) | undefined;
}

export interface PaidCall<T> {
  request: Omit<Request, "repeatable">;
  /** Computes the expected quote. Throws RefusedToSign if the quote cannot be right. */
  expect: (quoted: QuotedPayment) => Promise<Omit<Expected, "resource">>;
  /** Extracts the result from a success response. */
  open: (answer: Answer) => T;
}

/** Sends the request. If the response is a quote, pays it only if it matches the expectation exactly. */
export async function sendPaid<T>(payer: Payer, { request, expect, open }: PaidCall<T>): Promise<T> {
  const repeatable = { ...request, repeatable: true };
  const first = await payer.http.send(repeatable);
  if (first.status !== 402) return open(first);

  const { network, signer } = payer;
  const quoted = readQuote(first.headers);
  const resource = network.baseUrl + request.path;
  const expected = { ...(await expect(quoted)), resource };
  requireExpected(quoted, expected, network);
  await allow(payer, expected);
  const signature = await signPayment(quoted, { signer, network, now: await payer.now() });
  const signed = { ...repeatable, headers: { ...request.headers, "PAYMENT-SIGNATURE": signature } };
  return sendSigned(payer.http, signed, open);
}

async function allow(
  { budget, beforePayment }: Payer,
  { amount, currency, resource }: Expected,
): Promise<void> {
  const decimals = currency === "protocol-token" ? TOKEN_DECIMALS : undefined;
  const payment: PlannedPayment = { currency, amount, decimal: formatDecimal(amount, decimals), resource };
  await beforePayment?.(payment);
  budget.spend(payment);
}

/** Once a payment is signed, every retry sends the identical request with that payment. */
async function sendSigned<T>(http: Http, request: Request, open: (answer: Answer) => T): Promise<T> {
  let answer: Answer;
  try {
    answer = await http.send(request);
  } catch (error) {
    // After a 429, an earlier attempt can still have delivered the payment.
    const isUnknown =
      error instanceof ConnectionError ||
      (error instanceof ServiceError && (error.status >= 500 || error.status === 429));
    if (!isUnknown) throw error;
    const message = `The outcome of ${request.method} ${request.path} is not known yet (${error.message}). Resume this call; do not sign another payment for it.`;
    throw new OutcomeUnknown(message, () => sendSigned(http, request, open), error);
  }
  if (answer.status !== 402) return open(answer);
  const { error, message } = readQuote(answer.headers);
  throw new PaymentRejected(error, message);
}
