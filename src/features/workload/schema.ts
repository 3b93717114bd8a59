import { z } from "@hono/zod-openapi";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { AddressViewSchema } from "../../http/address.js";
import type { Workload } from "./read-workload.js";

export const WorkloadSchema = z
  .object({
    data: z.object({
      activeAsWorker: z.array(AddressViewSchema),
      completedAsWorker: z.array(AddressViewSchema),
      activeAsClient: z.array(AddressViewSchema),
      completedAsClient: z.array(AddressViewSchema),
      pendingBaVotes: z.array(z.object({ contractId: AddressViewSchema, criterionIndex: z.number() })),
      resolvedBaVotes: z.array(
        z.object({
          contractId: AddressViewSchema,
          criterionIndex: z.number(),
          vote: z.enum(OUTCOMES).nullable().openapi({ description: "Null if it was never opened" }),
          majorityOutcome: z.enum(OUTCOMES).nullable(),
        }),
      ),
    }),
    truncated: z
      .boolean()
      .openapi({ description: "True if an array had more than its newest 1,000 entries" }),
  })
  .openapi("Workload") satisfies z.ZodType<Workload>;
