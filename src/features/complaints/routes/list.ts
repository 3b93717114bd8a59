import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { listOf, PageQuerySchema } from "../../../http/pagination.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { loadContract } from "../../contracts/view.js";
import { listComplaints } from "../list-complaints.js";
import { ComplaintSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/complaints",
  operationId: "listComplaints",
  tags: ["Complaints"],
  summary: "List the complaints of a contract, oldest first",
  description: "Everything in one answer, unless `limit` or `cursor` is given.",
  request: { params: ContractParamsSchema, query: PageQuerySchema },
  responses: {
    200: {
      description: "Complaints",
      content: { "application/json": { schema: listOf(ComplaintSchema).openapi("ComplaintList") } },
    },
    ...errorResponses("invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function listComplaintsRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { limit, cursor } = c.req.valid("query");
    await loadContract(deps.db, id);
    const { complaints, nextCursor } = await listComplaints(deps.db, { contractId: id, limit, cursor });
    const paged = limit !== undefined || cursor !== undefined;
    return c.json(paged ? { data: complaints, nextCursor } : { data: complaints }, 200);
  });
}
