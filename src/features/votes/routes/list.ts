import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { listVotes } from "../list-votes.js";
import { VoteListSchema, VoteQuerySchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/votes",
  operationId: "listVotes",
  tags: ["Votes"],
  summary: "List votes, newest first",
  description: "Sealed until the tally: before it only the voter sees what it voted.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { query: VoteQuerySchema },
  responses: {
    200: { description: "A page of votes", content: { "application/json": { schema: VoteListSchema } } },
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "unavailable"),
  },
});

export function listVotesRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { status, ...filter } = c.req.valid("query");
    return c.json(await listVotes(deps, c.get("caller"), { ...filter, statuses: status }), 200);
  });
}
