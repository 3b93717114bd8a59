import { createRoute } from "@hono/zod-openapi";
import { loadContract } from "../../../services/contracts/view.js";
import type { Deps } from "../../../services/deps.js";
import { listVotes } from "../../../services/votes/list-votes.js";
import { errorResponses } from "../../envelope.js";
import { KEY_SECURITY, requireKey } from "../../middleware/auth.js";
import { createRouter } from "../../router.js";
import { ContractParamsSchema } from "../contracts/schema.js";
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
