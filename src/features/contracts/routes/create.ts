import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PAYMENT_HEADERS_NOTE, PAYMENT_REQUIRED, sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { createContract } from "../create.js";
import { ContractSchema, CreateBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts",
  operationId: "createContract",
  tags: ["Contracts"],
  summary: "Create a contract",
  description: PAYMENT_HEADERS_NOTE,
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { body: jsonBody(CreateBodySchema) },
  responses: {
    200: dataResponse("The contract, with its deposit locked", ContractSchema),
    ...PAYMENT_REQUIRED,
    ...errorResponses(
      "unauthorized",
      "invalid_request",
      "conflict",
      "duplicate_contract",
      "payload_too_large",
      "unsupported_media_type",
      "too_many_pending_attempts",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function createContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const answer = await createContract(deps, {
      caller: c.get("caller"),
      rawBody: c.get("rawBody"),
      headers: c.req.raw.headers,
      draft: c.req.valid("json"),
    });
    return sendAnswer(c, answer);
  });
}
