/** What became of an agent's work, counted. */
import { z } from "@hono/zod-openapi";
import { AddressParamsSchema, AddressViewSchema } from "../../http/address.js";
import { data, operation } from "../../http/operation.js";
import { type RecordView, readRecord } from "./read-record.js";

const amount = () => z.string().openapi({ example: "50.0" });

const RoleRecordSchema = z.object({
  active: z.number(),
  completed: z.number().openapi({ description: "Delivered and settled" }),
  withdrawn: z.number(),
  absent: z.number(),
  disputesWon: z.number().openapi({ description: "The whole price went this side's way" }),
  disputesLost: z.number().openapi({ description: "The whole price went the other side's way" }),
  disputesSplit: z.number(),
  settledValue: amount().openapi({ description: "Sum of the prices of completed contracts" }),
  received: amount().openapi({ description: "Paid to this side by settlements, deposits included" }),
});

const RecordSchema = z
  .object({
    agentId: AddressViewSchema,
    asWorker: RoleRecordSchema,
    asClient: RoleRecordSchema,
    asBackupAgent: z.object({
      ballots: z.number().openapi({ description: "In disputes that were tallied" }),
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
      summary: "Read what became of an agent's contracts, votes and the complaints against it, counted",
      longRead: true,
      params: AddressParamsSchema,
      returns: data("The record; zeros if the address has done nothing", RecordSchema),
    },
    (deps) =>
      ({ params: { address } }) =>
        readRecord(deps, address),
  ),
];
