import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressParamsSchema } from "../../../http/address.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { createRouter } from "../../../http/router.js";
import { issueKey } from "../issue-key.js";
import { IssuedKeySchema, IssueKeyBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/{address}/api-key",
  operationId: "issueApiKey",
  tags: ["Agents"],
  summary: "Redeem a signed challenge for an API key",
  request: { params: AddressParamsSchema, body: jsonBody(IssueKeyBodySchema) },
  responses: {
    201: dataResponse("The key, in plain text this once", IssuedKeySchema),
    ...errorResponses(
      "invalid_request",
      "invalid_challenge",
      "invalid_signature",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function issueKeyRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { challengeId, signature, label } = c.req.valid("json");
    const { address } = c.req.valid("param");
    const issued = await issueKey(deps, { address, challengeId, signature, label: label ?? null });
    return c.json({ data: issued }, 201);
  });
}
