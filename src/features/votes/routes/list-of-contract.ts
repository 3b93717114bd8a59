import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { loadContract } from "../../contracts/view.js";
import { listVotes } from "../list-votes.js";
import { VoteListSchema, VotePageQuerySchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/votes",
  operationId: "listContractVotes",
  tags: ["Votes"],
  summary: "List the votes on a contract, newest first",
  description: "Sealed until the tally: before it only the voter sees what it voted.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, query: VotePageQuerySchema },
  responses: {
    200: { description: "A page of votes", content: { "application/json": { schema: VoteListSchema } } },
    ...errorResponses("unauthorized", "invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function listContractVotesRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    await loadContract(deps.db, id);
    return c.json(await listVotes(deps, c.get("caller"), { ...c.req.valid("query"), contractId: id }), 200);
  });
}
