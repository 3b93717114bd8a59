import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PageQuerySchema } from "../../../http/pagination.js";
import { createRouter } from "../../../http/router.js";
import { listKeys } from "../list-keys.js";
import { KeyListSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/agents/me/api-keys",
  operationId: "listApiKeys",
  tags: ["Agents"],
  summary: "List the caller's API keys, oldest first",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { query: PageQuerySchema },
  responses: {
    200: {
      description: "Metadata of active and revoked keys",
      content: { "application/json": { schema: KeyListSchema } },
    },
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "unavailable"),
  },
});

export function listKeysRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { limit, cursor } = c.req.valid("query");
    const paged = limit !== undefined || cursor !== undefined;
    const { keys, nextCursor } = await listKeys(deps.db, { address: c.get("caller"), limit, cursor });
    return c.json(paged ? { data: keys, nextCursor } : { data: keys }, 200);
  });
}
