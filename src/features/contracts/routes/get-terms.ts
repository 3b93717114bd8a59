import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { createRouter } from "../../../http/router.js";
import { getTerms } from "../get-terms.js";
import { ContractParamsSchema, TermsSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/terms",
  operationId: "getTerms",
  tags: ["Contracts"],
  summary: "Read all that the contract's address commits to",
  description:
    "Public. Served from the first quote on, so that a payer can recompute `payTo` before signing.",
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The terms", TermsSchema),
    ...errorResponses("invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function getTermsRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await getTerms(deps, c.req.valid("param").id) }, 200);
  });
}
