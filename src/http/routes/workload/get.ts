import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../services/deps.js";
import { readWorkload } from "../../../services/workload/read-workload.js";
import { AddressParamsSchema } from "../../address.js";
import { errorResponses } from "../../envelope.js";
import { KEY_SECURITY, requireKey } from "../../middleware/auth.js";
import { createRouter } from "../../router.js";
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
