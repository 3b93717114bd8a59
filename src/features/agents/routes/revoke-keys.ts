import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressParamsSchema } from "../../../http/address.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { createRouter } from "../../../http/router.js";
import { revokeKeys } from "../revoke-keys.js";
import { RevokedKeysSchema, RevokeKeysBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/{address}/api-key/revoke",
  operationId: "revokeApiKeys",
  tags: ["Agents"],
  summary: "Redeem a signed challenge to revoke one key, or every key of the address",
  request: { params: AddressParamsSchema, body: jsonBody(RevokeKeysBodySchema) },
  responses: {
    200: dataResponse("How many keys stopped working", RevokedKeysSchema),
    ...errorResponses(
      "invalid_request",
      "invalid_challenge",
      "invalid_signature",
      "key_not_found",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function revokeKeysRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { challengeId, signature, keyId } = c.req.valid("json");
    const { address } = c.req.valid("param");
    return c.json({ data: await revokeKeys(deps, { address, challengeId, signature, keyId }) }, 200);
  });
}
