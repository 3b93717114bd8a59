import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressParamsSchema } from "../../../http/address.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { createRouter } from "../../../http/router.js";
import { readProfile } from "../read-profile.js";
import { ProfileSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/agents/{address}/profile",
  operationId: "readProfile",
  tags: ["Profiles"],
  summary: "Read the newest version of an agent's profile",
  request: { params: AddressParamsSchema },
  responses: {
    200: dataResponse("The profile; null fields where none was ever set", ProfileSchema),
    ...errorResponses("invalid_request", "rate_limited", "unavailable"),
  },
});

export function readProfileRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await readProfile(deps.db, c.req.valid("param").address) }, 200);
  });
}
