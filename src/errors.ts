/** Every API error code and its HTTP status (specification, "Errors"; docs/rules.md 61). */
export const ERROR_STATUS = {
  invalid_challenge: 400,
  invalid_request: 400,
  unauthorized: 401,
  invalid_signature: 401,
  forbidden: 403,
  not_found: 404,
  key_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  duplicate_contract: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  too_many_pending_attempts: 429,
  too_many_profile_updates: 429,
  too_many_complaints: 429,
  too_many_webhooks: 429,
  too_many_streams: 429,
  internal_error: 500,
  unavailable: 503,
  settlement_pending: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

interface AppErrorOptions {
  message: string;
  /** Machine-readable facts, served as `error.details`. */
  details?: unknown;
  /** The caller's next step, served as `error.hint`. */
  hint?: string;
  /** Whether a retry can succeed, served as `error.retryable`; true by default with `retryAfterSeconds`. */
  retryable?: boolean;
  retryAfterSeconds?: number;
  headers?: Record<string, string>;
  cause?: unknown;
}

/** Refuses a request. The HTTP layer turns it into the specified error body. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly code: ErrorCode;
  readonly options: AppErrorOptions;

  constructor(code: ErrorCode, options: AppErrorOptions) {
    super(options.message, { cause: options.cause });
    this.code = code;
    this.options = options.retryAfterSeconds === undefined ? options : { retryable: true, ...options };
  }

  get status(): (typeof ERROR_STATUS)[ErrorCode] {
    return ERROR_STATUS[this.code];
  }
}

/** `invalid_request` because of one field of the request, which `sentence` names. */
export function invalidField(path: string, message: string, sentence = `${path}: ${message}.`): AppError {
  return new AppError("invalid_request", { message: sentence, details: [{ path, message }] });
}

/** `conflict`: the call does not fit the state. */
export function conflict(message: string, details?: unknown): AppError {
  return new AppError("conflict", { message, details });
}

/** `forbidden`: the caller is not the one who may do this. */
export function forbidden(message: string): AppError {
  return new AppError("forbidden", { message });
}

/** `not_found`: there is no such resource, or the caller may not know of it. */
export function notFound(message: string): AppError {
  return new AppError("not_found", { message });
}

/** `unavailable`: the same request can succeed later. */
export function unavailable(message: string, retryAfterSeconds = 2, details?: unknown): AppError {
  return new AppError("unavailable", { message, retryAfterSeconds, details });
}
