import { createRoute } from "@hono/zod-openapi";
import { AddressParamsSchema } from "../../../http/address.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { type StakeDeps, viewStake } from "../view.js";
import { StakeSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/agents/{address}/stake",
  operationId: "getStake",
  tags: ["Stakes"],
  summary: "Read an agent's stake",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: AddressParamsSchema },
  responses: {
    200: dataResponse("The stake; zero and nulls where nothing is staked", StakeSchema),
    ...errorResponses("unauthorized", "invalid_request", "rate_limited", "unavailable"),
  },
});

export function getStakeRoute(deps: StakeDeps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await viewStake(deps, c.req.valid("param").address) }, 200);
  });
}
