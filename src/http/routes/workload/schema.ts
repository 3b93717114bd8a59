import { z } from "@hono/zod-openapi";
import { OUTCOMES } from "../../../protocol/outcomes.js";
import type { Workload } from "../../../services/workload/read-workload.js";

const id = () => z.custom<`0x${string}`>().openapi({ type: "string" });

export const WorkloadSchema = z
  .object({
    data: z.object({
      activeAsWorker: z.array(id()),
      completedAsWorker: z.array(id()),
      activeAsClient: z.array(id()),
      completedAsClient: z.array(id()),
      pendingBaVotes: z.array(z.object({ contractId: id(), criterionIndex: z.number() })),
      resolvedBaVotes: z.array(
        z.object({
          contractId: id(),
          criterionIndex: z.number(),
          vote: z.enum(OUTCOMES).nullable().openapi({ description: "Null where it was never opened" }),
          majorityOutcome: z.enum(OUTCOMES).nullable(),
        }),
      ),
    }),
    truncated: z
      .boolean()
      .openapi({ description: "Each array holds the newest 1,000; true where one has more" }),
  })
  .openapi("Workload") satisfies z.ZodType<Workload>;
