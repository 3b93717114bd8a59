import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PAYMENT_HEADERS_NOTE, PAYMENT_REQUIRED, sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { acceptContract, declineContract } from "../accept.js";
import { AcceptBodySchema, ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/accept",
  operationId: "acceptContract",
  tags: ["Contracts"],
  summary: "Accept or decline a contract",
  description: `${PAYMENT_HEADERS_NOTE} Declining costs nothing.`,
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, body: jsonBody(AcceptBodySchema) },
  responses: {
    200: dataResponse("The contract, matched or declined", ContractSchema),
    ...PAYMENT_REQUIRED,
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

export function acceptContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { accept } = c.req.valid("json");
    const call = { id, caller: c.get("caller"), rawBody: c.get("rawBody"), headers: c.req.raw.headers };
    return sendAnswer(c, accept ? await acceptContract(deps, call) : await declineContract(deps, call));
  });
}
