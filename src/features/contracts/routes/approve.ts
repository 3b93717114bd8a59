import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { approveContract } from "../approve.js";
import { ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/approve",
  operationId: "approveContract",
  tags: ["Contracts"],
  summary: "Approve the delivery",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The contract, resolved", ContractSchema),
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

export function approveContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    return sendAnswer(
      c,
      await approveContract(deps, { id, caller: c.get("caller"), rawBody: c.get("rawBody") }),
    );
  });
}
