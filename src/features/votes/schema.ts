import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { AddressSchema, AddressViewSchema } from "../../http/schemas.js";
import { ListQuerySchema } from "../contracts/schema.js";
import type { VotePage } from "./list-votes.js";
import type { VoteView } from "./view.js";

const WORDS = OUTCOMES.map((word) => `"${word}"`).join(", ");

const BallotEntrySchema = z.object({
  criterionIndex: z
    .int("must be a whole number, 0 or more")
    .min(0, "must be a whole number, 0 or more")
    .openapi({ description: "0-based" }),
  vote: z.enum(OUTCOMES, `must be one of ${WORDS}`),
});

export const VotesBodySchema = z
  .object({
    votes: z
      .array(BallotEntrySchema, "must be a list with exactly one entry per criterion")
      .min(1, "must have exactly one entry per criterion")
      .max(LIMITS.acceptanceCriteria, `must have at most ${LIMITS.acceptanceCriteria} entries`),
  })
  .openapi("SubmitVotes");

const untilTally = { description: "Null until the tally" };

/** The Vote of spec.md. */
export const VoteSchema = z
  .object({
    contractId: AddressViewSchema,
    backupAgent: AddressViewSchema,
    criterionIndex: z.number(),
    vote: z.enum(OUTCOMES).nullable().openapi({
      description: "Until the tally null to everyone except the voter; after it null if it was never opened",
    }),
    majorityOutcome: z.enum(OUTCOMES).nullable().openapi(untilTally),
    bondOutcome: z.enum(["returned", "slashed", "partially slashed"]).nullable().openapi(untilTally),
    reward: z.number().nullable().openapi(untilTally),
  })
  .openapi("Vote") satisfies z.ZodType<VoteView>;

export const VoteListSchema = z
  .object({ data: z.array(VoteSchema), nextCursor: z.string().nullable() })
  .openapi("VoteList") satisfies z.ZodType<VotePage>;

export const VotePageQuerySchema = ListQuerySchema.pick({ limit: true, cursor: true });

export const VoteQuerySchema = ListQuerySchema.pick({
  client: true,
  worker: true,
  status: true,
  backupAgent: true,
  limit: true,
  cursor: true,
}).extend({
  contractId: AddressSchema.optional(),
  majorityOutcome: z.enum(OUTCOMES, `must be one of ${WORDS}`).optional(),
});
