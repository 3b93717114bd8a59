/** The router of every resource, and the context variables that the middleware sets for handlers. */
import { OpenAPIHono } from "@hono/zod-openapi";
import type { Address } from "@working-contracts/protocol/types";
import type { Logger } from "pino";
import type { AppError, ErrorCode } from "../errors.js";
import { invalidInput } from "./responses.js";

export interface AppEnv {
  Variables: {
    requestId: string;
    logger: Logger;
    /** The body, byte for byte; empty if there was none. */
    rawBody: Buffer;
    /** Address behind the request's API key; null without a valid key. Protected routes read `caller` instead. */
    identity: Address | null;
    /** Counts the call towards the client IP's limit, whatever its key; throws `429 rate_limited`. Under /v1. */
    limitClient: () => void;
    /** Counts the response as a download until it closes; throws `429 rate_limited` (rate-limit.ts). */
    limitDownload: (length?: number) => void;
    /** Set if the body is not a JSON object; onError responds with it. */
    bodyFault?: AppError;
    /** Set if the response is an error. */
    errorCode?: ErrorCode;
  };
}

/** Context of routes behind `requireKey`. */
export interface CallerEnv {
  Variables: AppEnv["Variables"] & { caller: Address };
}

/** OpenAPI security of operations that need an API key. */
export const KEY_SECURITY = [{ apiKey: [] }];

/** A router that responds `400 invalid_request` to a failed schema; each resource exports one, mounted by app.ts. */
export function createRouter(): OpenAPIHono<AppEnv> {
  return new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidInput(result.error.issues);
    },
  });
}
