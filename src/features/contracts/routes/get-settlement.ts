import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { getSettlement } from "../get-settlement.js";
import { ContractParamsSchema, SettlementSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/settlement",
  operationId: "getSettlement",
  tags: ["Contracts"],
  summary: "Read who gets what, how the contract ended, and how far each payment is",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The settlement; no legs while the contract has not ended", SettlementSchema),
    ...errorResponses("unauthorized", "invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function getSettlementRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await getSettlement(deps, c.req.valid("param").id) }, 200);
  });
}
