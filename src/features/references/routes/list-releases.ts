import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { listReleases } from "../releases.js";
import { KeyReleaseListSchema, KeyReleaseQuerySchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/keys/releases",
  operationId: "listKeyReleases",
  tags: ["Reference keys"],
  summary: "List the releases of reference keys, newest first (client and worker)",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, query: KeyReleaseQuerySchema },
  responses: {
    200: {
      description: "One page of releases",
      content: { "application/json": { schema: KeyReleaseListSchema } },
    },
    ...errorResponses(
      "invalid_request",
      "unauthorized",
      "forbidden",
      "not_found",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function listReleasesRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const page = await listReleases(deps, { id, caller: c.get("caller"), ...c.req.valid("query") });
    return c.json({ data: page.releases, nextCursor: page.nextCursor }, 200);
  });
}
