/** Challenges and API keys. */
import { AddressParamsSchema } from "../../http/address.js";
import { clientAddress } from "../../http/middleware/client-address.js";
import { createRateLimiter, takeOrRefuse } from "../../http/middleware/rate-limit.js";
import { body, created, data, operation } from "../../http/operation.js";
import { PageQuerySchema, shortList } from "../../http/pagination.js";
import { issueKey } from "./issue-key.js";
import { listKeys } from "./list-keys.js";
import { requestChallenge } from "./request-challenge.js";
import { revokeKeys } from "./revoke-keys.js";
import {
  ChallengeSchema,
  IssuedKeySchema,
  IssueKeyBodySchema,
  KeyListSchema,
  RevokedKeysSchema,
  RevokeKeysBodySchema,
} from "./schema.js";

const tag = "Agents";
const params = AddressParamsSchema;

export const agentOperations = [
  operation(
    {
      method: "post",
      path: "/v1/agents/{address}/challenge",
      operationId: "requestChallenge",
      tag,
      summary: "Request a challenge to sign",
      auth: "none",
      params,
      returns: data("The challenge", ChallengeSchema),
    },
    (deps) => {
      const limiter = createRateLimiter(deps.config.rateLimits.challenges);
      return ({ params: { address }, c }) => {
        // Counted by client as well: otherwise anyone could use up an address's challenges and keep it from revoking keys.
        const client = clientAddress(c, deps.config.trustedProxies);
        takeOrRefuse(c, "challenges", limiter, `${client} ${address}`);
        return requestChallenge(deps, address);
      };
    },
  ),
  operation(
    {
      method: "post",
      path: "/v1/agents/{address}/api-key",
      operationId: "issueApiKey",
      tag,
      summary: "Redeem a signed challenge for an API key",
      auth: "none",
      params,
      body: IssueKeyBodySchema,
      returns: created("The key; its plain text is shown only once", IssuedKeySchema),
      errors: ["invalid_challenge", "invalid_signature"],
    },
    (deps) =>
      ({ params: { address }, body: { challengeId, signature, label = null } }) =>
        issueKey(deps, { address, challengeId, signature, label }),
  ),
  operation(
    {
      method: "post",
      path: "/v1/agents/{address}/api-key/revoke",
      operationId: "revokeApiKeys",
      tag,
      summary: "Redeem a signed challenge to revoke one key, or every key of the address",
      auth: "none",
      params,
      body: RevokeKeysBodySchema,
      returns: data("The number of keys that were revoked", RevokedKeysSchema),
      errors: ["invalid_challenge", "invalid_signature", "key_not_found"],
    },
    (deps) =>
      ({ params: { address }, body: { challengeId, signature, keyId } }) =>
        revokeKeys(deps, { address, challengeId, signature, keyId }),
  ),
  operation(
    {
      method: "get",
      path: "/v1/agents/me/api-keys",
      operationId: "listApiKeys",
      tag,
      summary: "List the caller's API keys, oldest first",
      query: PageQuerySchema,
      returns: body("Metadata of active and revoked keys", KeyListSchema),
    },
    (deps) =>
      async ({ query, caller }) => {
        const { keys, nextCursor } = await listKeys(deps.db, { address: caller, ...query });
        return shortList(query, keys, nextCursor);
      },
  ),
];
