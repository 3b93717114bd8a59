/** Complaints about the other party; they move no money. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { body, created, IdempotencyKeySchema, operation, resourceId } from "../../http/operation.js";
import {
  ContractParamsSchema,
  JsonObjectSchema,
  listOf,
  PageQuerySchema,
  shortList,
} from "../../http/schemas.js";
import { loadContract } from "../contracts/view.js";
import { ComplaintSchema, fileComplaint, listComplaints } from "./complaints.js";

const tag = "Complaints";
const path = "/v1/contracts/{id}/complaints";
const params = ContractParamsSchema;

const ComplaintBodySchema = z
  .object({ evidence: JsonObjectSchema(LIMITS.evidenceBytes) })
  .openapi("FileComplaint");

export const complaintOperations = [
  operation({
    method: "post",
    path,
    operationId: "fileComplaint",
    tag,
    summary: "File a complaint about the other party (client or worker)",
    signable: true,
    params,
    headers: IdempotencyKeySchema,
    body: ComplaintBodySchema,
    returns: created("The complaint", ComplaintSchema),
    errors: ["forbidden", "not_found", "conflict", "too_many_complaints"],
    handle: (deps, call) => {
      const { params, body, caller, signature } = call;
      return fileComplaint(deps, { ...body, ...params, caller, complaintId: resourceId(call), signature });
    },
  }),
  operation({
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
    handle: async ({ db }, { params: { id }, query }) => {
      await loadContract(db, id);
      return shortList(query, await listComplaints(db, { contractId: id, ...query }));
    },
  }),
];
