import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { createRouter } from "../../../http/router.js";
import { proveCheckpoint } from "../prove-checkpoint.js";
import { CheckpointParamsSchema, CheckpointProofSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/checkpoints/{checkpointId}/proof",
  operationId: "proveCheckpoint",
  tags: ["Checkpoints"],
  summary: "Prove a checkpoint against the root that the delivery anchored on chain",
  description:
    "Before delivery the proof is against the root of all checkpoints so far. The tree is OpenZeppelin's SimpleMerkleTree; MerkleProof.verify accepts the proof on chain.",
  request: { params: CheckpointParamsSchema },
  responses: {
    200: dataResponse("The proof", CheckpointProofSchema),
    ...errorResponses("invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function proveCheckpointRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await proveCheckpoint(deps, c.req.valid("param")) }, 200);
  });
}
