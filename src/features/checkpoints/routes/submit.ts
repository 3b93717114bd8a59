import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { submitCheckpoint } from "../submit-checkpoint.js";
import { CheckpointBodySchema, CheckpointSchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/checkpoint",
  operationId: "submitCheckpoint",
  tags: ["Checkpoints"],
  summary: "Submit a checkpoint of continuous work (the matched worker)",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, body: jsonBody(CheckpointBodySchema) },
  responses: {
    201: dataResponse("The checkpoint as stored", CheckpointSchema),
    ...errorResponses(
      "invalid_request",
      "unauthorized",
      "forbidden",
      "not_found",
      "conflict",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
    ),
  },
});

export function submitCheckpointRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const stored = await submitCheckpoint(deps, { id, caller: c.get("caller"), draft: c.req.valid("json") });
    return c.json({ data: stored }, 201);
  });
}
