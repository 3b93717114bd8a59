import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { deliver } from "../deliver.js";
import { ContractParamsSchema, ContractSchema, DeliveryBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/delivery",
  operationId: "submitDelivery",
  tags: ["Contracts"],
  summary: "Submit the delivery",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, body: jsonBody(DeliveryBodySchema) },
  responses: {
    200: dataResponse("The contract, under review", ContractSchema),
    ...errorResponses(
      "unauthorized",
      "invalid_request",
      "not_found",
      "forbidden",
      "conflict",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function deliverRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { delivery } = c.req.valid("json");
    const call = { id, caller: c.get("caller"), rawBody: c.get("rawBody"), reference: delivery };
    return sendAnswer(c, await deliver(deps, call));
  });
}
