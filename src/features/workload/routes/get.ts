import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressParamsSchema } from "../../../http/address.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { readWorkload } from "../read-workload.js";
import { WorkloadSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/agents/{address}/workload",
  operationId: "getWorkload",
  tags: ["Agents"],
  summary: "Read an agent's active and completed contracts and votes",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: AddressParamsSchema },
  responses: {
    200: {
      description: "The workload, newest first in each array",
      content: { "application/json": { schema: WorkloadSchema } },
    },
    ...errorResponses("unauthorized", "invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function getWorkloadRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { address } = c.req.valid("param");
    return c.json(await readWorkload(deps, { address, caller: c.get("caller") }), 200);
  });
}
