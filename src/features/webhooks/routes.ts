/** The event log, sent to URLs that agents choose. */
import { z } from "@hono/zod-openapi";
import { EVENT_TYPES } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import { created, data, endpoints, IdempotencyKeySchema, resourceId } from "../../http/endpoint.js";
import { AddressSchema, textUpTo } from "../../http/schemas.js";
import { EventTypesSchema, PositionSchema } from "../events/routes.js";
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  loadWebhook,
  replayWebhook,
  updateWebhook,
  WebhookSchema,
} from "./webhooks.js";

const UrlSchema = z
  .string()
  .max(LIMITS.webhookUrlLength, {
    error: `must have at most ${LIMITS.webhookUrlLength} characters`,
    // Checking that it is a URL takes quadratic time.
    abort: true,
  })
  .refine((text) => URL.canParse(text), "must be a URL")
  .openapi({ type: "string", format: "uri", example: "https://agent.example/events" });

const fields = {
  url: UrlSchema,
  description: textUpTo(LIMITS.webhookDescriptionLength).nullable(),
  agent: AddressSchema.nullable().openapi({
    type: ["string", "null"],
    description: "Only events that concern this agent; the caller by default, all agents with null",
  }),
  contractId: AddressSchema.nullable().openapi({
    type: ["string", "null"],
    description: "Only events of this contract",
  }),
  types: z
    .array(EventTypesSchema)
    .min(1)
    .max(EVENT_TYPES.length)
    .transform((lists) => [...new Set(lists.flat())])
    .nullable()
    .openapi({
      type: ["array", "null"],
      items: { type: "string" },
      example: ["contract.*", "payout.paid"],
      description:
        "Types, and prefixes such as `contract.*`. A type also stands for the `event.reverted` of its events",
    }),
};

export const WebhookBodySchema = z
  .object(fields)
  .partial({ description: true, agent: true, contractId: true, types: true })
  .openapi("CreateWebhook");

const WebhookChangesSchema = z
  .object({
    ...fields,
    disabled: z.boolean().openapi({
      description:
        "`true` disables the webhook; `false` enables it and delivers the events since it was disabled",
    }),
  })
  .partial()
  .openapi("UpdateWebhook");

const ReplayBodySchema = z
  .union(
    [
      z.object({ eventId: PositionSchema.openapi({ description: "Sends this one event again" }) }),
      z.object({
        after: z.union([z.literal("latest"), PositionSchema]).openapi({
          type: "string",
          description: "Sends everything after this event again; `latest` skips unsent events",
        }),
      }),
    ],
    { error: 'must have an event id, as text, in eventId or after; after can be "latest"' },
  )
  .openapi("ReplayWebhook");

const WebhookParamsSchema = z.object({
  id: z
    .uuid()
    .toLowerCase()
    .openapi({ param: { name: "id", in: "path" } }),
});

/** All fields in one object: an extension would be published as two, each forbidding the other's fields. */
const NewWebhookSchema = z
  .object({
    ...WebhookSchema.shape,
    secret: z.string().openapi({
      example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      description: "Signs every message by the rules of Standard Webhooks; shown only once",
    }),
  })
  .openapi("NewWebhook");

const { get, post, patch, delete: remove } = endpoints("Webhooks");
const path = "/v1/agents/me/webhooks";
const onePath = `${path}/{id}`;
const params = WebhookParamsSchema;

export const webhookEndpoints = [
  post(path, {
    operationId: "createWebhook",
    summary: "Send events to a URL from now on",
    description:
      "Each event is POSTed as the Event of GET /v1/events, signed by the rules of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). Any 2xx response within 10 seconds counts as received. Otherwise it is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 hours, and immediately after an outage in which its first attempt failed; `webhook-id` stays the same. If more than 500 events wait, they are retried more often and abandoned sooner; while 1,000 wait, no new event is sent. Events come at least once, and usually, not always, in order. Only public addresses are called, by HTTPS; redirects are not followed.",
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
  get(path, {
    operationId: "listWebhooks",
    summary: "List the caller's webhooks, oldest first (at most 10)",
    returns: data("All of them, without their secrets", z.array(WebhookSchema)),
    handle: ({ db }, { caller }) => listWebhooks(db, caller),
  }),
  get(onePath, {
    operationId: "getWebhook",
    summary: "Read a webhook and the state of its deliveries",
    params,
    returns: data("The webhook, without its secret", WebhookSchema),
    errors: ["not_found"],
    handle: ({ db }, { params: { id }, caller: owner }) => loadWebhook(db, { owner, id }),
  }),
  patch(onePath, {
    operationId: "updateWebhook",
    summary: "Change, disable or enable a webhook",
    description:
      "Absent fields keep their values. A webhook that was disabled (by its owner, by a 410 response, because every attempt of three days failed, or because all API keys were revoked) is enabled by `disabled: false`, and then receives its pending retries and everything since. Events in `givenUp` are sent only by a replay.",
    params,
    body: WebhookChangesSchema,
    returns: data("The webhook after the change", WebhookSchema),
    errors: ["not_found", "too_many_webhooks"],
    handle: (deps, { params: { id }, body: changes, caller }) => updateWebhook(deps, { caller, id, changes }),
  }),
  remove(onePath, {
    operationId: "deleteWebhook",
    summary: "Delete a webhook",
    params,
    returns: data("The deleted webhook's id", z.object({ id: z.string() })),
    errors: ["not_found"],
    handle: (deps, { params: { id }, caller }) => deleteWebhook(deps, { caller, id }),
  }),
  post(`${onePath}/replay`, {
    operationId: "replayWebhook",
    summary: "Send events again",
    description: "One event by its id, or everything that the webhook subscribes to after one.",
    params,
    body: ReplayBodySchema,
    returns: data("The webhook after the change", WebhookSchema),
    errors: ["not_found", "conflict"],
    handle: (deps, { params: { id }, body: replay, caller }) => replayWebhook(deps, { caller, id, replay }),
  }),
];
