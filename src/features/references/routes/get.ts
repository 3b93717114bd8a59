import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { releaseKeys } from "../release-keys.js";
import { KeySetSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/keys",
  operationId: "getReferenceKeys",
  tags: ["Reference keys"],
  summary: "Get the keys of the encrypted references that the caller may read",
  description:
    "Materials: client, named or matched worker. Delivery: worker, and the client from delivery on. Both: eligible Backup Agents while disputed. Every release is logged for the parties.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("A JWK Set; empty where no such reference exists yet", KeySetSchema),
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

export function getKeysRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const keys = await releaseKeys(deps, { id, caller: c.get("caller") });
    c.header("Cache-Control", "no-store");
    return c.json({ data: { keys } }, 200);
  });
}
