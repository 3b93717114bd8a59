import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { replayWebhook } from "../replay-webhook.js";
import { deleteWebhook, updateWebhook } from "../update-webhook.js";
import { ReplayBodySchema, WebhookChangesSchema, WebhookParamsSchema, WebhookSchema } from "./schema.js";

const WRITE_ERRORS = [
  "invalid_request",
  "unauthorized",
  "not_found",
  "payload_too_large",
  "unsupported_media_type",
  "rate_limited",
  "unavailable",
] as const;

const updateRoute = createRoute({
  method: "patch",
  path: "/v1/agents/me/webhooks/{id}",
  operationId: "updateWebhook",
  tags: ["Webhooks"],
  summary: "Change a webhook, or switch it off and on",
  description:
    "What is absent stays. One that was disabled (by its owner, by a 410 answer, or because every attempt of three days failed) is switched on by `disabled: false`, and is then sent everything since.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: WebhookParamsSchema, body: jsonBody(WebhookChangesSchema) },
  responses: {
    200: dataResponse("The webhook as it is now", WebhookSchema),
    ...errorResponses(...WRITE_ERRORS),
  },
});

const deleteRoute = createRoute({
  method: "delete",
  path: "/v1/agents/me/webhooks/{id}",
  operationId: "deleteWebhook",
  tags: ["Webhooks"],
  summary: "Delete a webhook",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: WebhookParamsSchema },
  responses: {
    200: dataResponse("It is gone", z.object({ id: z.string() })),
    ...errorResponses("invalid_request", "unauthorized", "not_found", "rate_limited", "unavailable"),
  },
});

const replayRoute = createRoute({
  method: "post",
  path: "/v1/agents/me/webhooks/{id}/replay",
  operationId: "replayWebhook",
  tags: ["Webhooks"],
  summary: "Send events again",
  description: "One event by its id, or everything that the webhook wants behind one.",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: WebhookParamsSchema, body: jsonBody(ReplayBodySchema) },
  responses: {
    200: dataResponse("The webhook as it is now", WebhookSchema),
    ...errorResponses(...WRITE_ERRORS, "conflict"),
  },
});

export function changeWebhookRoutes(deps: Deps) {
  return createRouter()
    .openapi(updateRoute, async (c) => {
      const { id } = c.req.valid("param");
      const changes = c.req.valid("json");
      return c.json({ data: await updateWebhook(deps, { caller: c.get("caller"), id, changes }) }, 200);
    })
    .openapi(deleteRoute, async (c) => {
      const { id } = c.req.valid("param");
      return c.json({ data: await deleteWebhook(deps, { caller: c.get("caller"), id }) }, 200);
    })
    .openapi(replayRoute, async (c) => {
      const { id } = c.req.valid("param");
      const replay = c.req.valid("json");
      return c.json({ data: await replayWebhook(deps, { caller: c.get("caller"), id, replay }) }, 200);
    });
}
