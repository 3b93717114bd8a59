import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { createWebhook } from "../create-webhook.js";
import { NewWebhookSchema, WebhookBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/me/webhooks",
  operationId: "createWebhook",
  tags: ["Webhooks"],
  summary: "Have events sent to a URL from now on",
  description:
    "Each event is POSTed as the Event of GET /v1/events, signed by the rules of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). Any 2xx answer within 10 seconds takes it. Otherwise it comes again after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours; `webhook-id` stays the same. Events come at least once, and usually, not always, in order. Only public addresses are called, by HTTPS; redirects are not followed.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { body: jsonBody(WebhookBodySchema) },
  responses: {
    201: dataResponse("The webhook, with its secret", NewWebhookSchema),
    ...errorResponses(
      "invalid_request",
      "unauthorized",
      "payload_too_large",
      "unsupported_media_type",
      "too_many_webhooks",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function createWebhookRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const caller = c.get("caller");
    const { url, description = null, agent = caller, contractId = null, types = null } = c.req.valid("json");
    const draft = { url, description, agent, contractId, types };
    return c.json({ data: await createWebhook(deps, { caller, draft }) }, 201);
  });
}
