/** An agent's active and completed work. */
import { z } from "@hono/zod-openapi";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { body, operation } from "../../http/operation.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { readWorkload, type Workload } from "./read-workload.js";

const WorkloadSchema = z
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

export const workloadOperations = [
  operation(
    {
      method: "get",
      path: "/v1/agents/{address}/workload",
      operationId: "getWorkload",
      tag: "Agents",
      summary: "Read an agent's active and completed contracts and votes",
      longRead: true,
      params: AddressParamsSchema,
      returns: body("The workload, newest first in each array", WorkloadSchema),
      errors: ["not_found"],
    },
    (deps) =>
      ({ params: { address }, caller }) =>
        readWorkload(deps, { address, caller }),
  ),
];
