import { z } from "@hono/zod-openapi";
import { EVENT_TYPES } from "@working-contracts/protocol/events";
import { LIMITS } from "@working-contracts/protocol/limits";
import { AddressSchema, upTo } from "../../http/schemas.js";
import { EventTypesSchema, PositionSchema } from "../events/schema.js";

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
  description: z
    .string()
    .refine(...upTo(LIMITS.webhookDescriptionLength))
    .openapi({ maxLength: LIMITS.webhookDescriptionLength })
    .nullable(),
  agent: AddressSchema.nullable().openapi({
    description: "Only events that concern this agent; the caller by default, all agents with null",
  }),
  contractId: AddressSchema.nullable().openapi({ description: "Only events of this contract" }),
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
      description: "Types, and prefixes such as `contract.*`",
    }),
};

export const WebhookBodySchema = z
  .object(fields)
  .partial({ description: true, agent: true, contractId: true, types: true })
  .openapi("CreateWebhook");

export const WebhookChangesSchema = z
  .object({
    ...fields,
    disabled: z
      .boolean()
      .openapi({ description: "Disables the webhook; or enables it, with everything since then" }),
  })
  .partial()
  .openapi("UpdateWebhook");

export const ReplayBodySchema = z
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

export const WebhookParamsSchema = z.object({
  id: z.uuid().openapi({ param: { name: "id", in: "path" } }),
});

const time = z.iso.datetime().nullable();

export const WebhookSchema = z
  .object({
    id: z.string(),
    url: z.string(),
    description: z.string().nullable(),
    agent: z.string().nullable(),
    contractId: z.string().nullable(),
    types: z.array(z.enum(EVENT_TYPES)).nullable(),
    /** `failing`: the newest attempt failed. `disabled`: nothing is sent until its owner enables it. */
    status: z.enum(["active", "failing", "disabled"]),
    createdAt: z.iso.datetime(),
    disabledAt: time,
    disabledReason: z.string().nullable(),
    lastAttemptAt: time,
    lastSuccessAt: time,
    lastStatus: z.number().nullable(),
    lastError: z.string().nullable(),
    pendingRetries: z.number(),
    givenUp: z
      .array(z.string())
      .openapi({ description: "Ids of events that were abandoned after three days" }),
  })
  .openapi("Webhook");
export type WebhookView = z.infer<typeof WebhookSchema>;

/** All fields in one object: an extension would be published as two, each forbidding the other's fields. */
export const NewWebhookSchema = z
  .object({
    ...WebhookSchema.shape,
    secret: z.string().openapi({
      example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      description: "Signs every message by the rules of Standard Webhooks; shown only once",
    }),
  })
  .openapi("NewWebhook");
