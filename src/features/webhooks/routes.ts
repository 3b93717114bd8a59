/** The event log, sent to URLs that agents choose. */
import { z } from "@hono/zod-openapi";
import { created, data, IdempotencyKeySchema, operation, resourceId } from "../../http/operation.js";
import {
  NewWebhookSchema,
  ReplayBodySchema,
  WebhookBodySchema,
  WebhookChangesSchema,
  WebhookParamsSchema,
  WebhookSchema,
} from "./schema.js";
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  loadWebhook,
  replayWebhook,
  updateWebhook,
} from "./webhooks.js";

const tag = "Webhooks";
const path = "/v1/agents/me/webhooks";
const onePath = `${path}/{id}`;
const params = WebhookParamsSchema;

export const webhookOperations = [
  operation({
    method: "post",
    path,
    operationId: "createWebhook",
    tag,
    summary: "Send events to a URL from now on",
    description:
      "Each event is POSTed as the Event of GET /v1/events, signed by the rules of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). Any 2xx response within 10 seconds counts as received. Otherwise it is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours; `webhook-id` stays the same. Events come at least once, and usually, not always, in order. Only public addresses are called, by HTTPS; redirects are not followed.",
    headers: IdempotencyKeySchema,
    body: WebhookBodySchema,
    returns: created("The webhook, with its secret", NewWebhookSchema),
    errors: ["too_many_webhooks"],
    handle: (deps, call) => {
      const { caller, body } = call;
      const { url, description = null, agent = caller, contractId = null, types = null } = body;
      const draft = { url, description, agent, contractId, types };
      return createWebhook(deps, { caller, id: resourceId(call), draft });
    },
  }),
  operation({
    method: "get",
    path,
    operationId: "listWebhooks",
    tag,
    summary: "List the caller's webhooks, oldest first (at most 10)",
    returns: data("All of them, without their secrets", z.array(WebhookSchema)),
    handle: ({ db }, { caller }) => listWebhooks(db, caller),
  }),
  operation({
    method: "get",
    path: onePath,
    operationId: "getWebhook",
    tag,
    summary: "Read a webhook and the state of its deliveries",
    params,
    returns: data("The webhook, without its secret", WebhookSchema),
    errors: ["not_found"],
    handle: ({ db }, { params: { id }, caller: owner }) => loadWebhook(db, { owner, id }),
  }),
  operation({
    method: "patch",
    path: onePath,
    operationId: "updateWebhook",
    tag,
    summary: "Change, disable or enable a webhook",
    description:
      "Absent fields keep their values. A webhook that was disabled (by its owner, by a 410 response, or because every attempt of three days failed) is enabled by `disabled: false`, and then gets everything since.",
    params,
    body: WebhookChangesSchema,
    returns: data("The webhook after the change", WebhookSchema),
    errors: ["not_found", "too_many_webhooks"],
    handle: (deps, { params: { id }, body: changes, caller }) => updateWebhook(deps, { caller, id, changes }),
  }),
  operation({
    method: "delete",
    path: onePath,
    operationId: "deleteWebhook",
    tag,
    summary: "Delete a webhook",
    params,
    returns: data("The deleted webhook's id", z.object({ id: z.string() })),
    errors: ["not_found"],
    handle: (deps, { params: { id }, caller }) => deleteWebhook(deps, { caller, id }),
  }),
  operation({
    method: "post",
    path: `${onePath}/replay`,
    operationId: "replayWebhook",
    tag,
    summary: "Send events again",
    description: "One event by its id, or everything that the webhook subscribes to after one.",
    params,
    body: ReplayBodySchema,
    returns: data("The webhook after the change", WebhookSchema),
    errors: ["not_found", "conflict"],
    handle: (deps, { params: { id }, body: replay, caller }) => replayWebhook(deps, { caller, id, replay }),
  }),
];
