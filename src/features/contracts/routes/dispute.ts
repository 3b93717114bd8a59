import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PAYMENT_HEADERS_NOTE, PAYMENT_REQUIRED, sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { disputeContract } from "../dispute.js";
import { ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/dispute",
  operationId: "disputeContract",
  tags: ["Contracts"],
  summary: "Dispute a delivery",
  description: PAYMENT_HEADERS_NOTE,
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The contract, disputed; the voting window is open", ContractSchema),
    ...PAYMENT_REQUIRED,
    ...errorResponses(
      "unauthorized",
      "invalid_request",
      "not_found",
      "forbidden",
      "conflict",
      "payload_too_large",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function disputeContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const call = { id, caller: c.get("caller"), rawBody: c.get("rawBody"), headers: c.req.raw.headers };
    return sendAnswer(c, await disputeContract(deps, call));
  });
}
