/** Turns every thrown error into a response: AppErrors as they are, anything else logged and hidden. */
import type { Context, ErrorHandler, Hono, NotFoundHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { HttpRequestError, RpcRequestError, TimeoutError, WebSocketRequestError } from "viem";
import { failedExecution } from "../../chain/failed-execution.js";
import { AppError } from "../../errors.js";
import type { AppEnv } from "../env.js";
import { errorResponse } from "../envelope.js";

export const onError: ErrorHandler<AppEnv> = (error, c) => {
  const served = toAppError(error, c);
  if (served.status >= 500) c.get("logger").error({ err: error }, served.code);
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
    return new AppError("unavailable", {
      message: "The query took too long; use a filter or a smaller page, or retry later.",
      retryable: true,
      retryAfterSeconds: 10,
      cause: error,
    });
  }
  if (isOutage(error)) {
    return new AppError("unavailable", {
      message: "A part of the service is temporarily unreachable; retry the request.",
      retryable: true,
      retryAfterSeconds: 2,
      cause: error,
    });
  }
  return new AppError("internal_error", { message: "Something went wrong on our side.", cause: error });
}

/** Postgres cancelled a query at the limit (STATEMENT_TIMEOUT_MS). */
const QUERY_CANCELED = "57014";

/** Node's network errors; Postgres shutting down or out of connections; transactions rolled back because of another. */
const OUTAGE_CODES =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENETUNREACH|08|53|57P|25P03|40001|40P01)/;

/** Messages of pg's connection errors, which have no code. */
const PG_OUTAGE =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error)/;
/** A view on the index is missing: the index is being built for the first time, or rebuilt. */
const UNDEFINED_TABLE = "42P01";

/** Whether Postgres or the node could not be reached, or did not respond: a retry can help. */
export function isOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A revert is a response of the contract, not an outage.
    if (cause instanceof RpcRequestError) return failedExecution(cause) === null;
    if (cause instanceof HttpRequestError || cause instanceof TimeoutError) return true;
    if (cause instanceof WebSocketRequestError) return true;
    const { code } = cause as { code?: unknown };
    if (typeof code === "string" && OUTAGE_CODES.test(code)) return true;
    if (PG_OUTAGE.test(cause.message)) return true;
    if (code === UNDEFINED_TABLE && cause.message.startsWith('relation "onchain.')) return true;
  }
  return false;
}

/** 404 for an unknown path; 405 with `Allow` if the path exists under other methods. */
export function notFound(app: Hono<AppEnv>): NotFoundHandler<AppEnv> {
  let table: { method: string; pattern: RegExp }[] | undefined;
  return (c) => {
    table ??= app.routes
      .filter(({ method, path }) => method !== "ALL" && !path.includes("*"))
      .map(({ method, path }) => ({ method, pattern: pathPattern(path) }));
    const methods = new Set(
      table.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method),
    );
    if (methods.size === 0) {
      return errorResponse(c, new AppError("not_found", { message: `Not found: ${c.req.path}` }));
    }
    if (methods.has("GET")) methods.add("HEAD");
    const allow = [...methods, "OPTIONS"].join(", ");
    const message = `Method ${c.req.method} not allowed. Allowed: ${allow}.`;
    return errorResponse(c, new AppError("method_not_allowed", { message, headers: { Allow: allow } }));
  };
}

function pathPattern(path: string): RegExp {
  const source = path
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${source.join("/")}$`);
}
