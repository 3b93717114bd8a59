/** Keys and shares with which agents read references that the service cannot (docs/rules.md 68). */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { data, operation } from "../../http/operation.js";
import { AddressParamsSchema, AddressSchema, AddressViewSchema } from "../../http/schemas.js";
import { ContractParamsSchema } from "../contracts/schema.js";
import { type EncryptionKeyView, publishKey, readKey } from "./keys.js";
import { type ShareView, shareDelivery, sharesFor } from "./shares.js";

const EncryptionKeyBodySchema = z
  .object({
    key: z
      .string()
      .regex(/^[\w-]{43}$/, "must be 32 bytes in base64url")
      .openapi({
        description: "An X25519 public key, as `x` in a JWK",
        example: "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08",
      }),
    signature: z
      .string()
      .max(LIMITS.signatureLength, `must have at most ${LIMITS.signatureLength} characters`)
      .openapi({ description: "EIP-191 signature of the caller over the text that publishes the key" }),
  })
  .openapi("PublishEncryptionKey");

const EncryptionKeySchema = z
  .object({
    address: AddressViewSchema,
    key: z.string().nullable(),
    signature: z.string().nullable().openapi({ description: "Proves that the key is the agent's own" }),
    publishedAt: z.iso.datetime().nullable(),
  })
  .openapi("EncryptionKey") satisfies z.ZodType<EncryptionKeyView>;

const ShareBodySchema = z
  .object({
    recipient: AddressSchema,
    jwe: z
      .string()
      .regex(/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/, "must be a compact JWE")
      .max(LIMITS.shareLength, `must have at most ${LIMITS.shareLength} characters`)
      .openapi({
        description: "The delivery, encrypted to the recipient's key",
        example: "eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIsImVuYyI6IkEyNTZHQ00ifQ.a2V5.aXY.dGV4dA.dGFn",
      }),
  })
  .openapi("ShareDelivery");

const ShareSchema = z
  .object({
    contractId: AddressViewSchema,
    recipient: AddressViewSchema,
    sender: AddressViewSchema,
    jwe: z.string(),
    sharedAt: z.iso.datetime(),
  })
  .openapi("DeliveryShare") satisfies z.ZodType<ShareView>;

const tag = "Reference keys";
const sharesPath = "/v1/contracts/{id}/delivery/shares";
const params = ContractParamsSchema;

export const encryptionOperations = [
  operation({
    method: "post",
    path: "/v1/agents/me/encryption-key",
    operationId: "publishEncryptionKey",
    tag,
    summary: "Publish the key to which others encrypt deliveries",
    description: "Replaces an earlier key.",
    body: EncryptionKeyBodySchema,
    returns: data("The published key", EncryptionKeySchema),
    errors: ["invalid_signature"],
    handle: (deps, { body, caller }) => publishKey(deps, { caller, ...body }),
  }),
  operation({
    method: "get",
    path: "/v1/agents/{address}/encryption-key",
    operationId: "getEncryptionKey",
    tag,
    summary: "Read an agent's encryption key",
    description: "Check its signature before you encrypt to it.",
    auth: "none",
    params: AddressParamsSchema,
    returns: data("The key; null fields if none was ever published", EncryptionKeySchema),
    handle: (deps, { params: { address } }) => readKey(deps, address),
  }),
  operation({
    method: "post",
    path: sharesPath,
    operationId: "shareDelivery",
    tag,
    summary: "Share a sealed delivery with a Backup Agent (client and worker)",
    params,
    body: ShareBodySchema,
    returns: data("The share", ShareSchema),
    errors: ["forbidden", "not_found", "conflict"],
    handle: (deps, { params: { id }, body, caller }) => shareDelivery(deps, { id, caller, ...body }),
  }),
  operation({
    method: "get",
    path: sharesPath,
    operationId: "listDeliveryShares",
    tag,
    summary: "Read what the parties shared with the caller",
    params,
    returns: data("At most one share of each party", z.array(ShareSchema)),
    errors: ["not_found"],
    handle: (deps, { params: { id }, caller }) => sharesFor(deps, { id, caller }),
  }),
];
