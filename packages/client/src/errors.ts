/** Errors of a call, by who detected them. */
import type { RejectionReason } from "@working-contracts/protocol/types";
import type { components } from "./api.js";
import type { DeclaredError } from "./deployed-code.js";

/** The `error` of a refused request. `details`, `hint` and `retryable` are optional (docs/rules.md 61). */
export type ErrorBody = components["schemas"]["Error"]["error"];
/** The service's reason to refuse a request. Later versions of `/v1` can add codes (docs/rules.md 63). */
export type ErrorCode = ErrorBody["code"];

/** The service refused the request: `code` says why, `message` says what to do. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  declare readonly code: ErrorCode;
  declare readonly status: number;
  declare readonly details?: unknown;
  declare readonly hint?: string | undefined;
  declare readonly requestId: string | null;
  /** Set if a payment was signed for the request. */
  payment?: UnusedPayment;

  constructor(refusal: Omit<ServiceError, "name" | "payment" | "stack" | "cause">) {
    super(refusal.message);
    Object.assign(this, refusal);
  }
}

/** No response from the service, so the outcome is unknown; or none from the caller's node, before a payment or to confirm an action. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** `Error` and `Panic` are Solidity's own. */
export type ContractError = DeclaredError | "Error" | "Panic";

/** A contract refused a transaction of one's own; `errorName` is the error that it declares. */
export class Reverted extends Error {
  override readonly name = "Reverted";
  readonly errorName: ContractError | undefined;
  constructor(message: string, errorName: string | undefined) {
    super(message);
    this.errorName = errorName as ContractError | undefined;
  }
}

/** Whether the service did not respond, could not, or not yet: the same request can succeed later. */
export const isOutage = (error: unknown): error is Error =>
  error instanceof ConnectionError ||
  (error instanceof ServiceError && (error.status >= 500 || error.status === 429));

/** A quote, a sign-in challenge or an action differs from the request. Nothing was signed, or the message says what. */
export class RefusedToSign extends Error {
  override readonly name = "RefusedToSign";
  /** The field that differs: `payTo`, `amount`, `asset`, `network`, `resource`, `terms`, `challenge`... */
  readonly field: string;

  constructor(field: string, difference: string, options?: { cause: unknown }) {
    super(`Refused to sign (${field}): ${difference}`, options);
    this.field = field;
  }
}

/** A reference exists, but is not what was delivered or cannot be opened. Dispute a delivery if this persists. */
export class UnreadableReference extends Error {
  override readonly name = "UnreadableReference";
}

/** The payment would exceed the caller's own limit. Nothing was signed. */
export class SpendingLimitError extends Error {
  override readonly name = "SpendingLimitError";
}

/** A signed payment that was not used, as far as is known: whoever has it can use it at its payee until then. */
export interface UnusedPayment {
  payTo: string;
  until: Date;
}

/** Says in words, too, until when the payment can be used. */
export function withPayment<E extends ServiceError | PaymentRejected | OutcomeUnknown | NotOnChain>(
  error: E,
  payment: UnusedPayment,
): E {
  error.payment = payment;
  error.message += ` Your signed payment to ${payment.payTo} can still be used until ${payment.until.toISOString()}.`;
  return error;
}

/** The service says that it rejected a payment without using it; `reason` is the x402 error name. */
export class PaymentRejected extends Error {
  override readonly name = "PaymentRejected";
  readonly reason: RejectionReason;
  payment?: UnusedPayment;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason as RejectionReason;
  }
}

/** The service reports what the caller's own node does not show. A signed payment can still be used, for its escrow alone. */
export class NotOnChain extends Error {
  override readonly name = "NotOnChain";
  readonly contractId: string;
  /** Of a call that can pay: asks the node again, and pays nothing. */
  declare resume?: () => Promise<unknown>;
  /** Set if this call signed one. */
  declare payment?: UnusedPayment;

  constructor(message: string, contractId: string, cause?: Error) {
    super(message, { cause });
    this.contractId = contractId;
  }
}

/**
 * The outcome was still unknown when time ran out or the caller aborted. `resume` repeats the identical request with the
 * same payment. It ignores the caller's `signal` if that is already aborted.
 */
export class OutcomeUnknown<T = unknown> extends Error {
  override readonly name = "OutcomeUnknown";
  readonly resume: () => Promise<T>;
  readonly signal: AbortSignal | undefined;
  /** Set if the service has not said what became of it. */
  declare payment?: UnusedPayment;

  constructor(message: string, resume: () => Promise<T>, cause: unknown, signal?: AbortSignal) {
    super(message, { cause });
    this.resume = resume;
    this.signal = signal;
  }
}

/** Reads a reference. Returns null if the contract has none or the caller is not entitled to its key. */
export async function ifAllowed(read: () => Promise<string | null>): Promise<string | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ServiceError && error.code === "forbidden") return null;
    throw error;
  }
}
