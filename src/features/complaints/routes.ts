/** Complaints about the other party; they move no money. */
import { body, created, operation } from "../../http/operation.js";
import { listOf, PageQuerySchema, shortList } from "../../http/pagination.js";
import { ContractParamsSchema } from "../contracts/schema.js";
import { loadContract } from "../contracts/view.js";
import { fileComplaint } from "./file-complaint.js";
import { listComplaints } from "./list-complaints.js";
import { ComplaintBodySchema, ComplaintSchema } from "./schema.js";

const tag = "Complaints";
const path = "/v1/contracts/{id}/complaints";
const params = ContractParamsSchema;

export const complaintOperations = [
  operation(
    {
      method: "post",
      path,
      operationId: "fileComplaint",
      tag,
      summary: "File a complaint about the other party (client or worker)",
      params,
      body: ComplaintBodySchema,
      returns: created("The complaint", ComplaintSchema),
      errors: ["forbidden", "not_found", "conflict", "too_many_complaints"],
    },
    (deps) =>
      ({ params: { id }, body: { evidence }, caller }) =>
        fileComplaint(deps, { id, caller, evidence }),
  ),
  operation(
    {
      method: "get",
      path,
      operationId: "listComplaints",
      tag,
      summary: "List the complaints of a contract, oldest first",
      description: "Everything in one response, unless `limit` or `cursor` is given.",
      auth: "none",
      longRead: true,
      params,
      query: PageQuerySchema,
      returns: body("Complaints", listOf(ComplaintSchema).openapi("ComplaintList")),
      errors: ["not_found"],
    },
    ({ db }) =>
      async ({ params: { id }, query }) => {
        await loadContract(db, id);
        const { complaints, nextCursor } = await listComplaints(db, { contractId: id, ...query });
        return shortList(query, complaints, nextCursor);
      },
  ),
];
