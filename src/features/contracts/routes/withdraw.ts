import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { withdrawContract } from "../withdraw.js";
import { ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/withdraw",
  operationId: "withdrawContract",
  tags: ["Contracts"],
  summary: "Withdraw from a matched contract",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The contract, cancelled by withdrawal", ContractSchema),
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

export function withdrawContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    return sendAnswer(
      c,
      await withdrawContract(deps, { id, caller: c.get("caller"), rawBody: c.get("rawBody") }),
    );
  });
}
