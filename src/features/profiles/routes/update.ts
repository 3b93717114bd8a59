import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { updateProfile } from "../update-profile.js";
import { ProfileBodySchema, ProfileVersionSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/agents/me/profile",
  operationId: "updateProfile",
  tags: ["Profiles"],
  summary: "Append a version of the caller's profile",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { body: jsonBody(ProfileBodySchema) },
  responses: {
    201: dataResponse("The new version", ProfileVersionSchema),
    ...errorResponses(
      "invalid_request",
      "unauthorized",
      "payload_too_large",
      "unsupported_media_type",
      "too_many_profile_updates",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function updateProfileRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const change = c.req.valid("json");
    return c.json({ data: await updateProfile(deps, { agent: c.get("caller"), change }) }, 201);
  });
}
