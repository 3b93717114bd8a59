import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { HexViewSchema, JsonObjectSchema, TimestampSchema } from "../../http/schemas.js";
import { ContractParamsSchema } from "../contracts/schema.js";
import type { CheckpointProof } from "./prove-checkpoint.js";
import type { CheckpointDraft } from "./submit-checkpoint.js";
import type { CheckpointView } from "./view.js";

const SequenceSchema = z.number().int("must be a whole number").min(1, "must be at least 1");

/** Opaque text of the Worker's own making: stored as given. */
const TextSchema = z
  .string()
  .min(1, "must not be empty")
  .refine(
    (text) => [...text].length <= LIMITS.checkpointStringLength,
    `must have at most ${LIMITS.checkpointStringLength} characters`,
  )
  .openapi({ minLength: 1, maxLength: LIMITS.checkpointStringLength });

export const CheckpointBodySchema = z
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

export const CheckpointSchema = z
  .object({
    id: z.string(),
    contractId: z.string(),
    fromSequence: z.number().int(),
    toSequence: z.number().int(),
    merkleRoot: z.string(),
    lastReceiptHash: z.string(),
    teeMeasurement: z.string(),
    teeSignature: z.string(),
    data: z.record(z.string(), z.unknown()),
    checkpointedAt: z.iso.datetime(),
    createdAt: z.iso.datetime(),
  })
  .openapi("Checkpoint") satisfies z.ZodType<CheckpointView>;

export const CheckpointParamsSchema = ContractParamsSchema.extend({
  checkpointId: z
    .string()
    .min(1)
    .max(100)
    .openapi({ param: { name: "checkpointId", in: "path" } }),
});

export const CheckpointProofSchema = z
  .object({
    checkpointId: z.string(),
    contractId: z.string(),
    leaf: HexViewSchema.openapi({
      description:
        "keccak256 of the canonical JSON (RFC 8785) of the Checkpoint without `id` and `createdAt`",
    }),
    proof: z
      .array(HexViewSchema)
      .openapi({ description: "Sibling hashes from the leaf up; keccak256 of each pair in ascending order" }),
    root: HexViewSchema,
    leafCount: z.number().int(),
    anchoredRoot: HexViewSchema.nullable().openapi({
      description: "`checkpointsRoot` of the escrow's WorkingContractDelivered event",
    }),
    anchored: z.boolean().openapi({ description: "Whether `root` is `anchoredRoot`" }),
  })
  .openapi("CheckpointProof") satisfies z.ZodType<CheckpointProof>;
