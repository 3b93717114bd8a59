/** Keys of the encrypted references, and the log of who received them. */

import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { body, data, operation } from "../../http/operation.js";
import { ContractParamsSchema, PageQuerySchema } from "../../http/schemas.js";
import { KeyReleaseSchema, listReleases, ReferenceKeySchema, releaseKeys } from "./release-keys.js";

/** A JWK Set (RFC 7517). */
export const KeySetSchema = z.object({ keys: z.array(ReferenceKeySchema) }).openapi("ReferenceKeySet");

export const KeyReleaseListSchema = z
  .object({ data: z.array(KeyReleaseSchema), nextCursor: z.string().nullable() })
  .openapi("KeyReleaseList");

export const KeyReleaseQuerySchema = PageQuerySchema.extend({
  cursor: z
    .string()
    // The largest id of a Postgres bigserial has 19 digits.
    .regex(/^\d{1,18}$/, "must be the nextCursor of the previous page")
    .transform(BigInt)
    .optional()
    .openapi({ type: "string", description: "nextCursor of the previous page" }),
}).transform(({ limit, cursor }) => ({ limit: limit ?? LIMITS.pageSize, before: cursor }));

const tag = "Reference keys";
const params = ContractParamsSchema;

export const referenceOperations = [
  operation({
    method: "get",
    path: "/v1/contracts/{id}/keys",
    operationId: "getReferenceKeys",
    tag,
    summary: "Get the keys of the encrypted references that the caller may read",
    description:
      "Materials: client, named or matched worker. Delivery: worker, and the client from delivery on. Both: eligible Backup Agents while disputed. The first release of a field to a reader in each hour is logged for the parties.",
    params,
    returns: data("A JWK Set; empty if no such reference exists yet", KeySetSchema),
    errors: ["forbidden", "not_found"],
    handle: async (deps, { params: { id }, caller, c }) => {
      const keys = await releaseKeys(deps, { id, caller });
      c.header("Cache-Control", "no-store");
      return { keys };
    },
  }),
  operation({
    method: "get",
    path: "/v1/contracts/{id}/keys/releases",
    operationId: "listKeyReleases",
    tag,
    summary: "List the releases of reference keys, newest first (client and worker)",
    params,
    query: KeyReleaseQuerySchema,
    returns: body("One page of releases", KeyReleaseListSchema),
    errors: ["forbidden", "not_found"],
    handle: (deps, { params: { id }, query, caller }) => listReleases(deps, { id, caller, ...query }),
  }),
];
