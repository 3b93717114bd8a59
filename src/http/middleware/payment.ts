import type { Context } from "hono";
import type { Answer } from "../../services/payments/answer.js";

/**
 * Sends an answer of the payment flow or of a relayed act: its bytes as they are, so that a replay equals the first
 * answer. Its type is `never`, because the text was checked where it was made and not against the route's schema.
 */
export function sendAnswer(c: Context, { status, headers, body }: Answer): never {
  return c.body(body, status, { "Content-Type": "application/json", ...headers }) as never;
}

/** OpenAPI response of a paid call without a (good) payment. */
export const PAYMENT_REQUIRED = {
  402: {
    description:
      "Payment required: the quote is in the base64 `Payment-Required` header (x402 version 2), or in the body (version 1)",
  },
} as const;

/** OpenAPI parameters of a paid call. */
export const PAYMENT_HEADERS_NOTE =
  "Without a payment the call answers 402 with a quote. Sign it and repeat the call, byte for byte, with the payment in `PAYMENT-SIGNATURE` (x402 version 2) or `X-PAYMENT` (version 1).";
