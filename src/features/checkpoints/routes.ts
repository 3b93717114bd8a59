/** Checkpoints of continuous work, and their proofs. */

import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import {
  created,
  data,
  endpoints,
  IdempotencyKeySchema,
  raw,
  resourceId,
  sendJson,
} from "../../http/endpoint.js";
import {
  ContractParamsSchema,
  JsonObjectSchema,
  listOf,
  PageQuerySchema,
  TimestampSchema,
  upTo,
} from "../../http/schemas.js";
import { loadContract } from "../contracts/view.js";
import {
  type CheckpointDraft,
  CheckpointProofSchema,
  CheckpointSchema,
  listCheckpoints,
  proveCheckpoint,
  streamCheckpoints,
  submitCheckpoint,
} from "./checkpoints.js";

const SequenceSchema = z.number().int("must be a whole number").min(1, "must be at least 1");

/** Opaque text of the Worker's own making: stored as given. */
const TextSchema = z
  .string()
  .min(1, "must not be empty")
  .refine(...upTo(LIMITS.checkpointStringLength))
  .openapi({ minLength: 1, maxLength: LIMITS.checkpointStringLength });

const CheckpointBodySchema = z
  .object({
    fromSequence: SequenceSchema,
    toSequence: SequenceSchema,
    merkleRoot: TextSchema,
    lastReceiptHash: TextSchema,
    teeMeasurement: TextSchema,
    teeSignature: TextSchema,
    checkpointedAt: TimestampSchema,
    data: JsonObjectSchema(LIMITS.checkpointDataBytes),
  })
  .refine(({ fromSequence, toSequence }) => toSequence >= fromSequence, {
    path: ["toSequence"],
    message: "must not be less than fromSequence",
  })
  .openapi("SubmitCheckpoint") satisfies z.ZodType<CheckpointDraft>;

const CheckpointParamsSchema = ContractParamsSchema.extend({
  checkpointId: z
    .string()
    .min(1)
    .max(100)
    .openapi({ param: { name: "checkpointId", in: "path" } }),
});

const { get, post } = endpoints("Checkpoints");

export const checkpointEndpoints = [
  post("/v1/contracts/{id}/checkpoint", {
    operationId: "submitCheckpoint",
    summary: "Submit a checkpoint of continuous work (the matched worker)",
    params: ContractParamsSchema,
    headers: IdempotencyKeySchema,
    body: CheckpointBodySchema,
    returns: created("The checkpoint as stored", CheckpointSchema),
    errors: ["forbidden", "not_found", "conflict"],
    handle: (deps, call) => {
      const { params, body: draft, caller } = call;
      return submitCheckpoint(deps, { id: params.id, caller, checkpointId: resourceId(call), draft });
    },
  }),
  get("/v1/contracts/{id}/checkpoints", {
    operationId: "listCheckpoints",
    summary: "List the checkpoints of a contract, oldest first",
    description:
      "Everything in one response, unless `limit` or `cursor` is given. A page ends early at the page's maximum of bytes (`GET /v1/limits`); follow `nextCursor`.",
    auth: "none",
    longRead: true,
    params: ContractParamsSchema,
    query: PageQuerySchema,
    returns: raw("Checkpoints", {
      "application/json": { schema: listOf(CheckpointSchema).openapi("CheckpointList") },
    }),
    errors: ["not_found"],
    handle: async ({ db }, { params: { id }, query: { limit, cursor }, c }) => {
      const by = { contractId: id, worker: (await loadContract(db, id)).chain.worker };
      if (limit === undefined && cursor === undefined) {
        c.get("limitDownload")();
        const text = listText(streamCheckpoints(db, by));
        // Read before the status is sent: a database that does not respond is still a 503.
        const first = await text.next();
        const stream = Readable.toWeb(Readable.from(prepend(first.value, text))) as ReadableStream;
        return c.body(stream as globalThis.ReadableStream, 200, { "Content-Type": "application/json" });
      }
      return sendJson(c, await listCheckpoints(db, { by, limit: limit ?? LIMITS.pageSize, cursor }), 200);
    },
  }),
  get("/v1/contracts/{id}/checkpoints/{checkpointId}/proof", {
    operationId: "proveCheckpoint",
    summary: "Prove a checkpoint against the root that the delivery anchored on chain",
    description:
      "Before delivery the proof is against the root of all checkpoints so far. The tree is OpenZeppelin's SimpleMerkleTree; MerkleProof.verify accepts the proof on chain.",
    auth: "none",
    longRead: true,
    params: CheckpointParamsSchema,
    returns: data("The proof", CheckpointProofSchema),
    errors: ["not_found"],
    handle: (deps, { params }) => proveCheckpoint(deps, params),
  }),
];

/** The text of `{ "data": [...] }`, item by item. */
async function* listText(items: AsyncIterable<unknown>): AsyncGenerator<string, undefined> {
  let separator = '{"data":[';
  for await (const item of items) {
    yield separator + JSON.stringify(item);
    separator = ",";
  }
  yield separator === "," ? "]}" : `${separator}]}`;
}

async function* prepend(first: string | undefined, rest: AsyncIterable<string>): AsyncGenerator<string> {
  if (first !== undefined) yield first;
  yield* rest;
}
