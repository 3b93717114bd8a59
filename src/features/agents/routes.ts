/** Challenges and API keys. */

import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import {
  AGENT_ACTIONS,
  ALL_ACTIONS,
  actionBits,
  type Permission,
} from "@working-contracts/protocol/signatures";
import { invalidField } from "../../errors.js";
import { body, created, data, endpoints, IdempotencyKeySchema } from "../../http/endpoint.js";
import {
  AddressParamsSchema,
  listOf,
  PageQuerySchema,
  shortList,
  TimestampSchema,
  textUpTo,
} from "../../http/schemas.js";
import { requestChallenge } from "./challenge.js";
import { issueKey, KeySchema, listKeys, revokeKeys } from "./keys.js";

const ChallengeSchema = z
  .object({
    challengeId: z.string(),
    message: z
      .string()
      .openapi({ description: "Exact text to sign (EIP-191); valid for 5 minutes and one call" }),
  })
  .openapi("Challenge");

const claim = {
  challengeId: z.string(),
  signature: z
    .string()
    .min(1)
    .max(LIMITS.signatureLength)
    .openapi({ description: "personal_sign over the challenge's message, in hex" }),
};

const ChallengeBodySchema = z
  .object({
    operatorActions: z
      .union([z.enum(["all", "none"]), z.array(z.enum(AGENT_ACTIONS)).min(1).max(AGENT_ACTIONS.length)], {
        error: `must be "all", "none" or a list of: ${AGENT_ACTIONS.join(", ")}`,
      })
      .default("all")
      .openapi({
        description:
          "Actions that the operator can carry out for the holder of the key without your signature for each. They are part of the signed message and enforced on chain. Only the newest sign-in counts",
      }),
    operatorUntil: TimestampSchema.optional().openapi({
      description: "When this delegation ends; by default it lasts until revoked",
    }),
  })
  .openapi("ChallengeBody", { example: { operatorActions: "all" } });

const IssueKeyBodySchema = z
  .object({
    ...claim,
    label: textUpTo(LIMITS.labelLength).nullish(),
  })
  .openapi("IssueKeyBody");

const IssuedKeySchema = z
  .object({
    address: z.string(),
    apiKey: z.string().openapi({ description: "Shown only once; the service stores only its hash" }),
    keyId: z.string(),
    label: z.string().nullable(),
  })
  .openapi("IssuedKey");

const RevokeKeysBodySchema = z.object({ ...claim, keyId: z.string().optional() }).openapi("RevokeKeysBody");

const RevokedKeysSchema = z
  .object({ address: z.string(), revokedCount: z.number().int() })
  .openapi("RevokedKeys");

const KeyListSchema = listOf(KeySchema).openapi("KeyList");

/** Throws `invalid_request` if the end is not in the future. */
function permissionOf(
  { operatorActions, operatorUntil }: z.output<typeof ChallengeBodySchema>,
  now: number,
): Permission {
  if (operatorActions === "none") return { actions: 0, until: 0 };
  const actions = operatorActions === "all" ? ALL_ACTIONS : actionBits(operatorActions);
  if (operatorUntil === undefined) return { actions, until: 0 };
  const until = Math.floor(operatorUntil.getTime() / 1000);
  if (until > now) return { actions, until };
  throw invalidField("operatorUntil", "must be in the future");
}

const { get, post } = endpoints("Agents");
const params = AddressParamsSchema;

export const agentEndpoints = [
  post("/v1/agents/{address}/challenge", {
    operationId: "requestChallenge",
    summary: "Request a challenge to sign",
    auth: "none",
    params,
    body: ChallengeBodySchema,
    optionalBody: true,
    returns: data("The challenge", ChallengeSchema),
    handle: (deps, { params: { address }, body, c }) => {
      c.get("limitChallenges")(address);
      return requestChallenge(deps, { address, permission: permissionOf(body, deps.clock.now()) });
    },
  }),
  post("/v1/agents/{address}/api-key", {
    operationId: "issueApiKey",
    summary: "Redeem a signed challenge for an API key",
    auth: "none",
    params,
    headers: IdempotencyKeySchema,
    body: IssueKeyBodySchema,
    returns: created("The key; its plain text is shown only once", IssuedKeySchema),
    errors: ["invalid_challenge", "invalid_signature"],
    handle: (deps, { params: { address }, headers, body: { challengeId, signature, label = null } }) => {
      const idempotencyKey = headers["idempotency-key"];
      return issueKey(deps, { address, challengeId, signature, label, idempotencyKey });
    },
  }),
  post("/v1/agents/{address}/api-key/revoke", {
    operationId: "revokeApiKeys",
    summary: "Redeem a signed challenge to revoke one key, or every key of the address",
    auth: "none",
    params,
    body: RevokeKeysBodySchema,
    returns: data("The number of keys that were revoked", RevokedKeysSchema),
    errors: ["invalid_challenge", "invalid_signature", "key_not_found"],
    handle: (deps, { params: { address }, body: { challengeId, signature, keyId } }) =>
      revokeKeys(deps, { address, challengeId, signature, keyId }),
  }),
  get("/v1/agents/me/api-keys", {
    operationId: "listApiKeys",
    summary: "List the caller's API keys, oldest first",
    query: PageQuerySchema,
    returns: body("Metadata of active and revoked keys", KeyListSchema),
    handle: async ({ db }, { query, caller }) => shortList(query, await listKeys(db, caller, query)),
  }),
];
