import { createRoute } from "@hono/zod-openapi";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { requestUnstake } from "../unstake.js";
import type { StakeDeps } from "../view.js";
import { StakeSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/me/unstake",
  operationId: "unstake",
  tags: ["Stakes"],
  summary: "Withdraw the whole stake",
  description: "It is paid back by itself, 48 hours later. Refused while a vote of the caller is open.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  responses: {
    200: dataResponse("The stake, with the time from which it is paid back", StakeSchema),
    ...errorResponses(
      "unauthorized",
      "forbidden",
      "conflict",
      "payload_too_large",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function unstakeRoute(deps: StakeDeps) {
  return createRouter().openapi(route, async (c) => {
    return sendAnswer(c, await requestUnstake(deps, { caller: c.get("caller"), rawBody: c.get("rawBody") }));
  });
}
