/** The Backup Agents' sealed votes. */
import { z } from "@hono/zod-openapi";
import { body, operation, stored } from "../../http/operation.js";
import { ContractParamsSchema } from "../contracts/schema.js";
import { loadContract } from "../contracts/view.js";
import { listVotes } from "./list-votes.js";
import {
  VoteListSchema,
  VotePageQuerySchema,
  VoteQuerySchema,
  VoteSchema,
  VotesBodySchema,
} from "./schema.js";
import { submitVotes } from "./submit-votes.js";

const tag = "Votes";
const path = "/v1/contracts/{id}/votes";
const params = ContractParamsSchema;
const SEALED_NOTE = "Sealed until the tally: before it, only the voter sees its own votes.";
const VOTE_SALT = {
  "Vote-Salt": {
    description:
      "32 bytes, hex: with it the voter can open its ballot on chain (`openVote`) should the service fail to, within a day of the window's end",
    schema: { type: "string" as const },
  },
};

export const voteOperations = [
  operation(
    {
      method: "post",
      path,
      operationId: "submitVotes",
      tag,
      summary: "Vote on all criteria of a disputed contract",
      description:
        "The bond covers all criteria. Once per Backup Agent and contract; sealed until the tally.",
      paid: true,
      params,
      body: VotesBodySchema,
      returns: stored("The caller's votes by criterion", z.array(VoteSchema), VOTE_SALT),
      errors: ["not_found", "forbidden", "conflict"],
    },
    (deps) =>
      ({ params: { id }, body: { votes }, caller, rawBody, c }) =>
        submitVotes(deps, { id, caller, rawBody, headers: c.req.raw.headers, votes }),
  ),
  operation(
    {
      method: "get",
      path,
      operationId: "listContractVotes",
      tag,
      summary: "List the votes on a contract, newest first",
      description: SEALED_NOTE,
      longRead: true,
      params,
      query: VotePageQuerySchema,
      returns: body("A page of votes", VoteListSchema),
      errors: ["not_found"],
    },
    (deps) =>
      async ({ params: { id }, query, caller }) => {
        await loadContract(deps.db, id);
        return listVotes(deps, caller, { ...query, contractId: id });
      },
  ),
  operation(
    {
      method: "get",
      path: "/v1/votes",
      operationId: "listVotes",
      tag,
      summary: "List votes, newest first",
      description: SEALED_NOTE,
      longRead: true,
      query: VoteQuerySchema,
      returns: body("A page of votes", VoteListSchema),
    },
    (deps) =>
      ({ query: { status, ...filter }, caller }) =>
        listVotes(deps, caller, { ...filter, statuses: status }),
  ),
];
