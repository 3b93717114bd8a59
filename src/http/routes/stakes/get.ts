import { createRoute } from "@hono/zod-openapi";
import { type StakeDeps, viewStake } from "../../../services/stakes/view.js";
import { AddressParamsSchema } from "../../address.js";
import { dataResponse, errorResponses } from "../../envelope.js";
import { KEY_SECURITY, requireKey } from "../../middleware/auth.js";
import { createRouter } from "../../router.js";
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
