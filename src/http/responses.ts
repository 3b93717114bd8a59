/**
 * The envelope of every response: `{ data }`, or `{ error: { code, message, details?, hint?, retryable? } }`. Every thrown
 * error becomes one: AppErrors as they are, anything else logged and hidden.
 */
import { z } from "@hono/zod-openapi";
import type { Context, ErrorHandler, Hono, NotFoundHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import {
  BlockNotFoundError,
  ContractFunctionZeroDataError,
  HttpRequestError,
  RpcRequestError,
  TimeoutError,
} from "viem";
import { failedExecution } from "../chain/errors.js";
import { SQLSTATE } from "../db/client.js";
import { AppError, ERROR_STATUS, type ErrorCode, unavailable } from "../errors.js";
import type { AppEnv } from "./middleware.js";

const ErrorSchema = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(ERROR_STATUS) as [ErrorCode, ...ErrorCode[]]),
      message: z.string(),
      details: z.unknown().optional(),
      hint: z.string().optional(),
      retryable: z.boolean().optional(),
    }),
  })
  .openapi("Error");

const dataOf = <T extends z.ZodType>(schema: T) => z.object({ data: schema });

/** OpenAPI response of a successful call. */
export const dataResponse = <T extends z.ZodType>(description: string, schema: T) => ({
  description,
  content: { "application/json": { schema: dataOf(schema) } },
});

/** OpenAPI responses for the codes that an endpoint can respond with, one per HTTP status, one example per code. */
export function errorResponses(...codes: ErrorCode[]): Record<never, never> {
  const unique = [...new Set(codes)];
  const statuses = new Set(unique.map((code) => ERROR_STATUS[code]));
  const responses = [...statuses].map((status) => {
    const ofStatus = unique.filter((code) => ERROR_STATUS[code] === status);
    const description = ofStatus.map((code) => `\`${code}\``).join(", ");
    const examples = ofStatus.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
    const media = { schema: ErrorSchema, examples: Object.fromEntries(examples) };
    return [status, { description, content: { "application/json": media } }];
  });
  return Object.fromEntries(responses);
}

/** Sets everything of an error's response but its body. */
export function setError(c: Context, { code, status, options }: AppError): void {
  c.set("errorCode", code);
  for (const [name, value] of Object.entries(options.headers ?? {})) c.header(name, value);
  if (options.retryAfterSeconds !== undefined) c.header("Retry-After", String(options.retryAfterSeconds));
  c.status(status);
}

/** The response for an error thrown on purpose. */
function errorResponse(c: Context, error: AppError): Response {
  const { message, details, hint, retryable } = error.options;
  setError(c, error);
  return c.json({ error: { code: error.code, message, details, hint, retryable } });
}

/** `invalid_request` for a failed schema: every issue in `details`, the first one in the message. */
export function invalidInput(issues: readonly { path: PropertyKey[]; message: string }[]): AppError {
  const details = issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message }));
  const [first] = details;
  const message = `${first?.path || "request"}: ${first?.message ?? "is invalid"}`;
  return new AppError("invalid_request", { message, details });
}

export const onError: ErrorHandler<AppEnv> = (error, c) => {
  const served = toAppError(error, c);
  if (served.status >= 500) c.get("logger")().error({ err: error }, served.code);
  return errorResponse(c, served);
};

/** The AppError to serve for any thrown value. */
export function toAppError(error: unknown, c: Context<AppEnv>): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof HTTPException) {
    if (error.status === 415) {
      return new AppError("unsupported_media_type", {
        message: "Send the body as Content-Type: application/json.",
      });
    }
    const fault = c.get("bodyFault");
    if (fault !== undefined) return fault;
    if (error.status === 400) return new AppError("invalid_request", { message: error.message });
  }
  if ((error as { code?: unknown }).code === QUERY_CANCELED) {
    return unavailable("The query took too long; use a filter or a smaller page, or retry later.", 10);
  }
  if (isOutage(error))
    return unavailable("A part of the service is temporarily unreachable; retry the request.");
  return new AppError("internal_error", {
    message:
      "Internal error. Retry the identical request; if this persists, report the X-Request-Id of this response.",
    cause: error,
  });
}

/** Postgres cancelled a query at the limit (STATEMENT_TIMEOUT_MS). */
const QUERY_CANCELED = "57014";

/**
 * Node's network errors; Postgres shutting down, out of connections, read-only or with another password; transactions
 * rolled back because of another.
 */
const OUTAGE_CODES =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENETUNREACH|08|28|53|57P|25006|25P03|40001|40P01)/;

/** The last two are of a node that is behind: it lacks blocks, and has no code at a new escrow. */
const OUTAGES = [HttpRequestError, TimeoutError, BlockNotFoundError, ContractFunctionZeroDataError];

/** Messages of pg's connection errors, which have no code. */
const PG_OUTAGE =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error)/;

/** Whether Postgres or the node could not be reached, or did not respond: a retry can help. */
export function isOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A revert is a response of the contract, not an outage.
    if (cause instanceof RpcRequestError) return failedExecution(cause) === null;
    if (OUTAGES.some((outage) => cause instanceof outage)) return true;
    const { code } = cause as { code?: unknown };
    if (typeof code === "string" && OUTAGE_CODES.test(code)) return true;
    if (PG_OUTAGE.test(cause.message)) return true;
    // The views of the index are missing until it is first complete. Only Postgres's message names a missing table.
    if (code === SQLSTATE.undefinedTable && cause.message.startsWith('relation "onchain.')) return true;
  }
  return false;
}

const METHODS = ["POST", "GET", "PATCH", "DELETE"];

/** 404 for an unknown path; 405 with `Allow` if the path exists under other methods. */
export function notFound({ router }: Hono<AppEnv>): NotFoundHandler<AppEnv> {
  return (c) => {
    // Middleware matches as well, as `ALL`.
    const methods = METHODS.filter((method) =>
      router.match(method, c.req.path)[0].some(([[, route]]) => route.method !== "ALL"),
    );
    if (methods.length === 0) {
      return errorResponse(c, new AppError("not_found", { message: `Not found: ${c.req.path}` }));
    }
    if (methods.includes("GET")) methods.push("HEAD");
    const allow = [...methods, "OPTIONS"].join(", ");
    const message = `Method ${c.req.method} not allowed. Allowed: ${allow}.`;
    return errorResponse(c, new AppError("method_not_allowed", { message, headers: { Allow: allow } }));
  };
}

export const ERROR_EXAMPLES: Record<ErrorCode, string> = {
  invalid_challenge: "The challenge is unknown, expired, already used, or was issued to another address.",
  invalid_request: "budgetOrPrice: must be a decimal above 0, with at most 6 decimals and no exponent",
  unauthorized: "This call needs an active API key: Authorization: Bearer <API_KEY>.",
  invalid_signature:
    "The signature was not made by this address over the challenge's message (EIP-191 personal_sign).",
  forbidden:
    "Only the contract's client, 0x70997970c51812dc3a010c7d01b50e0d17dc79c8, can do this; your key belongs to 0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc.",
  not_found: "Contract not found: 0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a",
  key_not_found: "This address has no active key with the id 0b0f6c1e-6d0c-4f5e-9a55-2f1f3a5f9f10.",
  method_not_allowed: "Method PUT not allowed. Allowed: GET, HEAD, OPTIONS.",
  conflict: "The contract is matched; this call needs under-review.",
  duplicate_contract:
    "You have already posted this request body: it created the contract 0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a. To post another contract like it, change the idempotencyKey.",
  payload_too_large: "The request body is larger than 262144 bytes, or comes in more than 4096 pieces.",
  unsupported_media_type: "Send the body as Content-Type: application/json.",
  rate_limited: "More than 60 requests per minute (writes); retry in 12 s.",
  too_many_pending_attempts:
    "You have 5 unpaid creation attempts. Pay one of them, or wait: the oldest one expires at 2026-11-30T12:00:00.000Z.",
  too_many_profile_updates: "A profile can change 10 times in 24 hours; retry in 3600 s.",
  too_many_complaints: "The client of this contract has filed 10 complaints, the maximum.",
  too_many_webhooks: "This address has 10 webhooks, the maximum.",
  too_many_streams: "You have 10 open streams, the maximum; close one first.",
  internal_error:
    "Internal error. Retry the identical request; if this persists, report the X-Request-Id of this response.",
  unavailable: "A part of the service is temporarily unreachable; retry the request.",
  settlement_pending:
    "The transaction is pending. Retry the identical request, with the same payment, to get its outcome.",
};
