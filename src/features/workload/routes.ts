/** An agent's active and completed work. */
import { AddressParamsSchema } from "../../http/address.js";
import { body, operation } from "../../http/operation.js";
import { readWorkload } from "./read-workload.js";
import { WorkloadSchema } from "./schema.js";

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
