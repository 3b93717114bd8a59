import { createRoute } from "@hono/zod-openapi";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PAYMENT_HEADERS_NOTE, PAYMENT_REQUIRED, sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { addStake } from "../stake.js";
import type { StakeDeps } from "../view.js";
import { StakeBodySchema, StakeSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/me/stake",
  operationId: "stake",
  tags: ["Stakes"],
  summary: "Stake protocol tokens to be eligible as a Backup Agent",
  description: `${PAYMENT_HEADERS_NOTE} The quote is in protocol tokens (18 decimals), to the registry. A further stake adds to the first.`,
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { body: jsonBody(StakeBodySchema) },
  responses: {
    200: dataResponse("The caller's whole stake", StakeSchema),
    ...PAYMENT_REQUIRED,
    ...errorResponses(
      "unauthorized",
      "invalid_request",
      "conflict",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function addStakeRoute(deps: StakeDeps) {
  return createRouter().openapi(route, async (c) => {
    const { amount = null } = c.req.valid("json");
    const call = { caller: c.get("caller"), rawBody: c.get("rawBody"), headers: c.req.raw.headers, amount };
    return sendAnswer(c, await addStake(deps, call));
  });
}
