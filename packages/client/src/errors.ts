/** What can go wrong in a call, by who found it. */
import type { components } from "./api.js";

export type ErrorCode = components["schemas"]["Error"]["error"]["code"];

/** The service refused a call; `code` says why, `message` what to do. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: unknown;
  readonly hint: string | undefined;
  readonly requestId: string | null;

  constructor(refusal: {
    code: ErrorCode;
    status: number;
    message: string;
    details?: unknown;
    hint?: string | undefined;
    requestId?: string | null;
  }) {
    super(refusal.message);
    this.code = refusal.code;
    this.status = refusal.status;
    this.details = refusal.details;
    this.hint = refusal.hint;
    this.requestId = refusal.requestId ?? null;
  }
}

/** The service, or something on the way to it, did not answer; nothing is known about the call. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** A quote or a challenge is not what was asked for: nothing was signed. */
export class RefusedToSign extends Error {
  override readonly name = "RefusedToSign";
  /** What differs: `payTo`, `amount`, `asset`, `network`, `resource`, `terms`, `challenge`... */
  readonly field: string;

  constructor(field: string, difference: string) {
    super(`Refused to sign, ${field}: ${difference}`);
    this.field = field;
  }
}

/** The payment would exceed the caller's own limit: nothing was signed. */
export class SpendingLimitError extends Error {
  override readonly name = "SpendingLimitError";
}

/** The service refused a payment and took none; `reason` is the x402 name of the fault. */
export class PaymentRejected extends Error {
  override readonly name = "PaymentRejected";
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Time ran out before the outcome was known. `resume` repeats the very same call, with the very same payment. */
export class OutcomeUnknown<T = unknown> extends Error {
  override readonly name = "OutcomeUnknown";
  readonly resume: () => Promise<T>;

  constructor(message: string, resume: () => Promise<T>, cause: unknown) {
    super(message, { cause });
    this.resume = resume;
  }
}
