import { z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { StoredResponse } from "../../payments/operation-outcome.js";

/**
 * Sends the stored response of a relayed action, its bytes unchanged, so that a replay equals the first response. The
 * return type is `never` because the body is finished JSON text, which the route's schema does not check.
 */
export function sendStored(c: Context, { status, headers, body }: StoredResponse): never {
  return c.body(body, status, { "Content-Type": "application/json", ...headers }) as never;
}

const EmptyBodySchema = z
  .strictObject({})
  .openapi("EmptyBody", { description: "Version 2: the quote is in the header" });

const quote = {
  scheme: z.literal("exact"),
  network: z.string().openapi({ description: "CAIP-2 name; in version 1 the short name, if there is one" }),
  maxAmountRequired: z.string().openapi({ description: "In the asset's smallest unit", example: "50000000" }),
  payTo: z.string().openapi({
    description: "The contract's escrow, whose address is the contract's id; for a stake the registry",
  }),
  asset: z.string().openapi({ description: "Token contract" }),
  maxTimeoutSeconds: z.int().openapi({ example: 60 }),
  resource: z.url().openapi({ description: "The call that is paid for" }),
  description: z.string(),
  mimeType: z.literal("application/json"),
  extra: z
    .object({ name: z.string(), version: z.string() })
    .openapi({ description: "EIP-712 domain of the asset" }),
};

const refusal = {
  error: z.string().openapi({
    description:
      "Reason of a refused payment: a name of the x402 specification, `payer_mismatch` or `authorization_used`",
  }),
  errorMessage: z.string().optional().openapi({ description: "The reason, for people" }),
};

/** The decoded `Payment-Required` header. */
export const PaymentRequiredSchema = z
  .object({
    x402Version: z.literal(2),
    ...refusal,
    resource: z.object({ url: z.url(), description: z.string(), mimeType: z.literal("application/json") }),
    accepts: z.array(
      z.object({
        ...quote,
        amount: z.string().openapi({ description: "As maxAmountRequired", example: "50000000" }),
      }),
    ),
    extensions: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi("PaymentRequired");

const PaymentRequiredV1Schema = z
  .object({ x402Version: z.literal(1), ...refusal, accepts: z.array(z.object(quote)) })
  .openapi("PaymentRequiredV1");

/** OpenAPI response of a paid call without a (good) payment. */
export const PAYMENT_REQUIRED = {
  402: {
    description: "Payment required: sign the quote and retry the request, byte for byte",
    headers: {
      "Payment-Required": {
        description: "The quote: base64 of a `PaymentRequired` object",
        required: true,
        schema: { type: "string" as const, contentEncoding: "base64", contentMediaType: "application/json" },
      },
    },
    content: { "application/json": { schema: z.union([EmptyBodySchema, PaymentRequiredV1Schema]) } },
  },
};

/** Description of a paid call. */
export const PAYMENT_HEADERS_NOTE =
  "Without a payment the response is 402 with a quote. Sign it and retry the request, byte for byte, with the payment in `PAYMENT-SIGNATURE` (x402 version 2) or `X-PAYMENT` (version 1).";
