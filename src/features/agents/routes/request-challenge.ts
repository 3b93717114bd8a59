import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressParamsSchema } from "../../../http/address.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { clientAddress } from "../../../http/middleware/client-address.js";
import { createRateLimiter, takeOrRefuse } from "../../../http/middleware/rate-limit.js";
import { createRouter } from "../../../http/router.js";
import { requestChallenge } from "../request-challenge.js";
import { ChallengeSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/{address}/challenge",
  operationId: "requestChallenge",
  tags: ["Agents"],
  summary: "Request a challenge to sign",
  request: { params: AddressParamsSchema },
  responses: {
    200: dataResponse("The challenge", ChallengeSchema),
    ...errorResponses("invalid_request", "rate_limited", "unavailable"),
  },
});

export function requestChallengeRoute(deps: Deps) {
  const limiter = createRateLimiter(deps.config.rateLimits.challenges);
  return createRouter().openapi(route, async (c) => {
    const { address } = c.req.valid("param");
    // By who asks, too: else anybody could use an address's challenges up, and keep it from revoking its keys.
    const asker = clientAddress(c, deps.config.trustedProxies);
    takeOrRefuse(c, "challenges", limiter, `${asker} ${address}`);
    return c.json({ data: await requestChallenge(deps, address) }, 200);
  });
}
