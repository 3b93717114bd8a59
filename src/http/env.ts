/** What the middleware leaves on the context for handlers. */

import type { Address } from "@working-contracts/protocol/types";
import type { Logger } from "pino";
import type { AppError, ErrorCode } from "../errors.js";

export interface AppEnv {
  Variables: {
    requestId: string;
    logger: Logger;
    /** The body as it came, byte for byte; empty where there was none. */
    rawBody: Buffer;
    /** Address behind the request's API key; null without a valid key. Protected routes read `caller` instead. */
    identity: Address | null;
    /** Set by body.ts when the body is no JSON object, for onError to answer with. */
    bodyFault?: AppError;
    /** Set where the answer is a refusal. */
    errorCode?: ErrorCode;
  };
}

/** Context of routes behind `requireKey`. */
export interface CallerEnv {
  Variables: AppEnv["Variables"] & { caller: Address };
}

/** OpenAPI security of operations that need an API key. */
export const KEY_SECURITY = [{ apiKey: [] }];
