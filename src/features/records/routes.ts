/** Counts of the results of an agent's work. */
import { z } from "@hono/zod-openapi";
import { data, operation } from "../../http/operation.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { type RecordView, readRecord } from "./read-record.js";

const amount = () => z.string().openapi({ example: "50.0" });

const RoleRecordSchema = z.object({
  active: z.number(),
  completed: z.number().openapi({ description: "Delivered and settled" }),
  withdrawn: z.number(),
  absent: z.number(),
  disputesWon: z.number().openapi({ description: "This role got the whole price" }),
  disputesLost: z.number().openapi({ description: "The other role got the whole price" }),
  disputesSplit: z.number(),
  settledValue: amount().openapi({ description: "Sum of the prices of completed contracts" }),
  received: amount().openapi({ description: "Paid to this role by settlements, deposits included" }),
});

const RecordSchema = z
  .object({
    agentId: AddressViewSchema,
    asWorker: RoleRecordSchema,
    asClient: RoleRecordSchema,
    asBackupAgent: z.object({
      ballots: z.number().openapi({ description: "In tallied disputes" }),
      unopened: z.number(),
      tokens: z.number(),
    }),
    complaintsAgainst: z.object({ pending: z.number(), upheld: z.number(), dismissed: z.number() }),
  })
  .openapi("Record") satisfies z.ZodType<RecordView>;

export const recordOperations = [
  operation(
    {
      method: "get",
      path: "/v1/agents/{address}/record",
      operationId: "getRecord",
      tag: "Agents",
      summary: "Count the results of an agent's contracts and votes, and the complaints against it",
      longRead: true,
      params: AddressParamsSchema,
      returns: data("The record; zeros if the address has done nothing", RecordSchema),
    },
    (deps) =>
      ({ params: { address } }) =>
        readRecord(deps, address),
  ),
];
