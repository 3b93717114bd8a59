/** Keys of the encrypted references, and the log of who received them. */
import { body, data, operation } from "../../http/operation.js";
import { ContractParamsSchema } from "../contracts/schema.js";
import { listReleases } from "./list-releases.js";
import { releaseKeys } from "./release-keys.js";
import { KeyReleaseListSchema, KeyReleaseQuerySchema, KeySetSchema } from "./schema.js";

const tag = "Reference keys";
const params = ContractParamsSchema;

export const referenceOperations = [
  operation(
    {
      method: "get",
      path: "/v1/contracts/{id}/keys",
      operationId: "getReferenceKeys",
      tag,
      summary: "Get the keys of the encrypted references that the caller may read",
      description:
        "Materials: client, named or matched worker. Delivery: worker, and the client from delivery on. Both: eligible Backup Agents while disputed. Every release is logged for the parties.",
      params,
      returns: data("A JWK Set; empty if no such reference exists yet", KeySetSchema),
      errors: ["forbidden", "not_found"],
    },
    (deps) =>
      async ({ params: { id }, caller, c }) => {
        const keys = await releaseKeys(deps, { id, caller });
        c.header("Cache-Control", "no-store");
        return { keys };
      },
  ),
  operation(
    {
      method: "get",
      path: "/v1/contracts/{id}/keys/releases",
      operationId: "listKeyReleases",
      tag,
      summary: "List the releases of reference keys, newest first (client and worker)",
      params,
      query: KeyReleaseQuerySchema,
      returns: body("One page of releases", KeyReleaseListSchema),
      errors: ["forbidden", "not_found"],
    },
    (deps) =>
      async ({ params: { id }, query, caller }) => {
        const { releases, nextCursor } = await listReleases(deps, { id, caller, ...query });
        return { data: releases, nextCursor };
      },
  ),
];
