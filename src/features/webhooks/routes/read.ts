import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { listWebhooks, loadWebhook } from "../view.js";
import { WebhookParamsSchema, WebhookSchema } from "./schema.js";

const listRoute = createRoute({
  method: "get",
  path: "/v1/agents/me/webhooks",
  operationId: "listWebhooks",
  tags: ["Webhooks"],
  summary: "List the caller's webhooks, oldest first (at most 10)",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  responses: {
    200: dataResponse("All of them, without their secrets", z.array(WebhookSchema)),
    ...errorResponses("unauthorized", "rate_limited", "unavailable"),
  },
});

const getRoute = createRoute({
  method: "get",
  path: "/v1/agents/me/webhooks/{id}",
  operationId: "getWebhook",
  tags: ["Webhooks"],
  summary: "Read a webhook, and how its deliveries go",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: WebhookParamsSchema },
  responses: {
    200: dataResponse("The webhook, without its secret", WebhookSchema),
    ...errorResponses("invalid_request", "unauthorized", "not_found", "rate_limited", "unavailable"),
  },
});

export function readWebhookRoutes({ db }: Deps) {
  return createRouter()
    .openapi(listRoute, async (c) => c.json({ data: await listWebhooks(db, c.get("caller")) }, 200))
    .openapi(getRoute, async (c) => {
      const { id } = c.req.valid("param");
      return c.json({ data: await loadWebhook(db, { owner: c.get("caller"), id }) }, 200);
    });
}
