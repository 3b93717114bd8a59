import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { fileComplaint } from "../file-complaint.js";
import { ComplaintBodySchema, ComplaintSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/complaints",
  operationId: "fileComplaint",
  tags: ["Complaints"],
  summary: "File a complaint about the other party (client or worker)",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, body: jsonBody(ComplaintBodySchema) },
  responses: {
    201: dataResponse("The complaint", ComplaintSchema),
    ...errorResponses(
      "invalid_request",
      "unauthorized",
      "forbidden",
      "not_found",
      "conflict",
      "payload_too_large",
      "unsupported_media_type",
      "too_many_complaints",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function fileComplaintRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { evidence } = c.req.valid("json");
    return c.json({ data: await fileComplaint(deps, { id, caller: c.get("caller"), evidence }) }, 201);
  });
}
