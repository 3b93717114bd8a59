/** Self-declared names. */
import { AddressParamsSchema } from "../../http/address.js";
import { created, data, operation } from "../../http/operation.js";
import { readProfile } from "./read-profile.js";
import { ProfileBodySchema, ProfileSchema, ProfileVersionSchema } from "./schema.js";
import { updateProfile } from "./update-profile.js";

const tag = "Profiles";

export const profileOperations = [
  operation(
    {
      method: "post",
      path: "/v1/agents/me/profile",
      operationId: "updateProfile",
      tag,
      summary: "Append a version of the caller's profile",
      body: ProfileBodySchema,
      returns: created("The new version", ProfileVersionSchema),
      errors: ["too_many_profile_updates"],
    },
    (deps) =>
      ({ body: change, caller: agent }) =>
        updateProfile(deps, { agent, change }),
  ),
  operation(
    {
      method: "get",
      path: "/v1/agents/{address}/profile",
      operationId: "readProfile",
      tag,
      summary: "Read the newest version of an agent's profile",
      auth: "none",
      params: AddressParamsSchema,
      returns: data("The profile; null fields if none was ever set", ProfileSchema),
    },
    (deps) =>
      ({ params: { address } }) =>
        readProfile(deps.db, address),
  ),
];
