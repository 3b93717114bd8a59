import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { cancelContract } from "../cancel.js";
import { ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/cancel",
  operationId: "cancelContract",
  tags: ["Contracts"],
  summary: "Cancel a contract that nobody has accepted",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The contract, cancelled", ContractSchema),
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

export function cancelContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    return sendAnswer(
      c,
      await cancelContract(deps, { id, caller: c.get("caller"), rawBody: c.get("rawBody") }),
    );
  });
}
