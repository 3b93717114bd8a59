/** The life of a contract; votes on a disputed one are in features/votes. */
import { z } from "@hono/zod-openapi";
import { body, data, endpoints, stored } from "../../http/endpoint.js";
import { ContractParamsSchema } from "../../http/schemas.js";
import { createContract } from "./create-contract.js";
import { getTerms, TermsSchema } from "./get-terms.js";
import { getLedger, getSettlement, LedgerSchema, SettlementSchema } from "./ledger.js";
import { deliver, performFreeAction, performPaidAction } from "./lifecycle.js";
import { listContracts } from "./list-contracts.js";
import { AcceptBodySchema, CreateBodySchema, DeliveryBodySchema, ListQuerySchema } from "./schema.js";
import { ContractSchema, viewContract } from "./view.js";

const { get, post } = endpoints("Contracts");
const params = ContractParamsSchema;
const REFUSALS = ["not_found", "forbidden", "conflict"] as const;

function lifecycleEndpoint(name: "approve" | "withdraw" | "cancel", summary: string, result: string) {
  return post(`/v1/contracts/{id}/${name}`, {
    operationId: `${name}Contract`,
    summary,
    signable: true,
    params,
    returns: stored(result, ContractSchema),
    errors: [...REFUSALS],
    handle: (deps, { params: { id }, actionHeaders, caller, rawBody }) =>
      performFreeAction(deps, name, { id, caller, rawBody, actionHeaders }),
  });
}

export const contractEndpoints = [
  post("/v1/contracts", {
    operationId: "createContract",
    summary: "Create a contract",
    paid: true,
    body: CreateBodySchema,
    returns: stored("The contract, with its deposit locked", ContractSchema),
    errors: ["conflict", "duplicate_contract", "too_many_pending_attempts"],
    handle: (deps, { caller, rawBody, body: draft, c }) =>
      createContract(deps, {
        caller,
        rawBody,
        draft,
        headers: c.req.raw.headers,
        limitQuote: c.get("limitQuote"),
      }),
  }),
  get("/v1/contracts", {
    operationId: "listContracts",
    summary: "List contracts, newest first",
    longRead: true,
    query: ListQuerySchema,
    returns: body(
      "A page of contracts",
      z.object({ data: z.array(ContractSchema), nextCursor: z.string().nullable() }),
    ),
    handle: (deps, { query, caller, c }) => listContracts(deps, query, { ip: c.get("ip"), caller }),
  }),
  get("/v1/contracts/{id}", {
    operationId: "getContract",
    summary: "Read a contract",
    params,
    returns: data("The contract", ContractSchema),
    errors: ["not_found"],
    handle: (deps, { params: { id } }) => viewContract(deps, id),
  }),
  get("/v1/contracts/{id}/terms", {
    operationId: "getTerms",
    summary: "Read the terms that the contract's address commits to",
    description:
      "Public once the contract is open. Before that, its caller can read them with its API key, to recompute `payTo` before signing.",
    auth: "optional",
    params,
    returns: data("The terms", TermsSchema),
    errors: ["not_found"],
    handle: (deps, { params: { id }, c }) => getTerms(deps, id, c.get("identity")),
  }),
  get("/v1/contracts/{id}/settlement", {
    operationId: "getSettlement",
    summary: "Read the payouts, how the contract ended, and the state of each payment",
    longRead: true,
    params,
    returns: data("The settlement; no legs while the contract has not ended", SettlementSchema),
    errors: ["not_found"],
    handle: (deps, { params: { id } }) => getSettlement(deps, id),
  }),
  post("/v1/contracts/{id}/accept", {
    operationId: "acceptContract",
    summary: "Accept or decline a contract",
    description: "Declining costs nothing.",
    paid: true,
    signable: true,
    params,
    body: AcceptBodySchema,
    returns: stored("The contract, matched or declined", ContractSchema),
    errors: [...REFUSALS],
    handle: (deps, { params: { id }, body: { accept }, actionHeaders, caller, rawBody, c }) =>
      accept
        ? performPaidAction(deps, "accept", { id, caller, rawBody, headers: c.req.raw.headers })
        : performFreeAction(deps, "decline", { id, caller, rawBody, actionHeaders }),
  }),
  post("/v1/contracts/{id}/delivery", {
    operationId: "submitDelivery",
    summary: "Submit the delivery",
    signable: true,
    params,
    body: DeliveryBodySchema,
    returns: stored("The contract, under review", ContractSchema),
    errors: [...REFUSALS],
    handle: (deps, { params: { id }, body: { delivery }, actionHeaders, caller, rawBody }) =>
      deliver(deps, { id, caller, rawBody, actionHeaders, reference: delivery }),
  }),
  lifecycleEndpoint("approve", "Approve the delivery", "The contract, resolved"),
  post("/v1/contracts/{id}/dispute", {
    operationId: "disputeContract",
    summary: "Dispute a delivery",
    paid: true,
    params,
    returns: stored("The contract, disputed; the voting window is open", ContractSchema),
    errors: [...REFUSALS],
    handle: (deps, { params: { id }, caller, rawBody, c }) =>
      performPaidAction(deps, "dispute", { id, caller, rawBody, headers: c.req.raw.headers }),
  }),
  lifecycleEndpoint("withdraw", "Withdraw from a matched contract", "The contract, cancelled by withdrawal"),
  lifecycleEndpoint("cancel", "Cancel a contract that no one has accepted", "The contract, cancelled"),
  get("/v1/contracts/{id}/ledger", {
    operationId: "getLedger",
    summary: "Read every amount that the escrow took in and paid out, against its balance on chain",
    longRead: true,
    params,
    returns: data("The escrow's books", LedgerSchema),
    errors: ["not_found"],
    handle: (deps, { params: { id } }) => getLedger(deps, id),
  }),
];
