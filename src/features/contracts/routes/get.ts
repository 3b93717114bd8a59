import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { viewContract } from "../view.js";
import { ContractParamsSchema, ContractSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}",
  operationId: "getContract",
  tags: ["Contracts"],
  summary: "Read a contract",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The contract", ContractSchema),
    ...errorResponses("unauthorized", "invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function getContractRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await viewContract(deps, c.req.valid("param").id) }, 200);
  });
}
