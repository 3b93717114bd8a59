import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { listContracts } from "../list.js";
import { ContractSchema, ListQuerySchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts",
  operationId: "listContracts",
  tags: ["Contracts"],
  summary: "List contracts, newest first",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { query: ListQuerySchema },
  responses: {
    200: {
      description: "A page of contracts",
      content: {
        "application/json": {
          schema: z.object({ data: z.array(ContractSchema), nextCursor: z.string().nullable() }),
        },
      },
    },
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "unavailable"),
  },
});

export function listContractsRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { status, ...filter } = c.req.valid("query");
    return c.json(await listContracts(deps, { ...filter, statuses: status }), 200);
  });
}
