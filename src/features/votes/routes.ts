/** The Backup Agents' sealed votes. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isCommitment, OUTCOMES } from "@working-contracts/protocol/outcomes";
import type { Hex } from "@working-contracts/protocol/types";
import { body, endpoints, stored } from "../../http/endpoint.js";
import { inReadQueue } from "../../http/read-queue.js";
import { AddressSchema, ContractParamsSchema } from "../../http/schemas.js";
import { ListQuerySchema } from "../contracts/schema.js";
import { loadContract } from "../contracts/view.js";
import { openVote, submitVotes } from "./ballots.js";
import { listVotes, VoteListSchema, VoteSchema } from "./view.js";

const WORDS = OUTCOMES.map((word) => `"${word}"`).join(", ");

const BallotEntrySchema = z.object({
  criterionIndex: z
    .int("must be a whole number, 0 or more")
    .min(0, "must be a whole number, 0 or more")
    .openapi({ description: "0-based" }),
  vote: z.enum(OUTCOMES, `must be one of ${WORDS}`),
});

const VotesSchema = z
  .array(BallotEntrySchema, "must be a list with exactly one entry per criterion")
  .min(1, "must have exactly one entry per criterion")
  .max(LIMITS.acceptanceCriteria, `must have at most ${LIMITS.acceptanceCriteria} entries`);

const Bytes32Schema = z
  .string("must be 32 bytes in hex")
  .regex(/^0x[0-9a-fA-F]{64}$/, "must be 32 bytes in hex, with 0x")
  .transform((text) => text.toLowerCase() as Hex)
  .openapi({ type: "string", pattern: "^0x[0-9a-fA-F]{64}$", example: `0x${"5a".repeat(32)}` });

const VotesBodySchema = z
  .object({
    votes: VotesSchema.optional(),
    salt: Bytes32Schema.optional().openapi({
      description:
        "With `votes`: the salt that seals them, instead of a random one. If the payment's nonce is keccak256 of their commitment, the payment also signs the votes",
    }),
    commitment: Bytes32Schema.refine(
      isCommitment,
      "must be a keccak256 hash: the escrow would read so small a number as opened votes",
    )
      .optional()
      .openapi({
        type: "string",
        pattern: "^0x[0-9a-fA-F]{64}$",
        description:
          "Instead of `votes`: keccak256 of the ABI-encoded (chain id, escrow, voter, packed votes, salt). Only the voter can open it, within a day of the window's end",
      }),
  })
  .superRefine(({ votes, commitment }, { addIssue }) => {
    if ((votes === undefined) !== (commitment === undefined)) return;
    const message = "must have exactly one entry per criterion, unless a commitment is sent instead";
    addIssue({ code: "custom", path: ["votes"], message });
  })
  .openapi("SubmitVotes", { example: { votes: [{ criterionIndex: 0, vote: "met" }] } });

const OpenVoteBodySchema = z.object({ votes: VotesSchema, salt: Bytes32Schema }).openapi("OpenVote");

const VotePageQuerySchema = ListQuerySchema.pick({ limit: true, cursor: true });

/** `client`, `worker` and `status` are those of the contract voted on. */
export const VoteQuerySchema = ListQuerySchema.pick({
  client: true,
  worker: true,
  status: true,
  backupAgent: true,
  limit: true,
  cursor: true,
}).extend({
  contractId: AddressSchema.optional(),
  majorityOutcome: z.enum(OUTCOMES, `must be one of ${WORDS}`).optional(),
});

const { get, post } = endpoints("Votes");
const path = "/v1/contracts/{id}/votes";
const params = ContractParamsSchema;
const SEALED_NOTE = "Sealed until the tally: before it, only the voter sees its own votes.";
const VOTE_SALT = {
  "Vote-Salt": {
    description:
      "Sent only if the service sealed the votes: 32 bytes, hex. If the service fails to open the ballot, the voter can open it with this salt, within a day of the end of voting",
    schema: { type: "string" as const },
  },
};

export const voteEndpoints = [
  post(path, {
    operationId: "submitVotes",
    summary: "Vote on all criteria of a disputed contract",
    description:
      "The bond covers all criteria. Once per Backup Agent and contract; sealed until the tally. With `commitment` instead of `votes` the service cannot read the votes either, and the voter has to open them. A bond with `validAfter` 1 needs keccak256 of the commitment as its nonce; for any other nonce sign `validAfter` 0.",
    paid: true,
    params,
    body: VotesBodySchema,
    returns: stored("The caller's votes by criterion", z.array(VoteSchema), VOTE_SALT),
    errors: ["not_found", "forbidden", "conflict"],
    handle: (deps, { params: { id }, body: { votes = [], salt, commitment }, caller, rawBody, c }) => {
      const ballot = commitment === undefined ? { votes, salt } : { commitment };
      return submitVotes(deps, { id, caller, rawBody, headers: c.req.raw.headers, ballot });
    },
  }),
  post(`${path}/open`, {
    operationId: "openVote",
    summary: "Open a vote that was sealed with a commitment",
    description:
      "Within a day of the end of the voting window: a vote that is not opened forfeits its bond. Other callers see the votes after the tally.",
    params,
    body: OpenVoteBodySchema,
    returns: stored("The caller's votes by criterion", z.array(VoteSchema)),
    errors: ["not_found", "forbidden", "conflict"],
    handle: (deps, { params: { id }, body: { votes, salt }, caller, rawBody }) =>
      openVote(deps, { id, caller, rawBody, votes, salt }),
  }),
  get(path, {
    operationId: "listContractVotes",
    summary: "List the votes on a contract, newest first",
    description: SEALED_NOTE,
    longRead: true,
    params,
    query: VotePageQuerySchema,
    returns: body("A page of votes", VoteListSchema),
    errors: ["not_found"],
    handle: async (deps, { params: { id }, query, caller }) => {
      const page = await listVotes(deps, caller, { ...query, contractId: id });
      if (page.data.length === 0) await loadContract(deps, id);
      return page;
    },
  }),
  get("/v1/votes", {
    operationId: "listVotes",
    summary: "List votes, newest first",
    description: SEALED_NOTE,
    longRead: true,
    query: VoteQuerySchema,
    returns: body("A page of votes", VoteListSchema),
    handle: (deps, { query, caller, c }) => {
      const read = () => listVotes(deps, caller, query);
      const { contractId, status, majorityOutcome, client, worker } = query;
      const isShort = contractId !== undefined || !(status ?? majorityOutcome ?? client ?? worker);
      return isShort ? read() : inReadQueue({ ip: c.get("ip"), caller }, read);
    },
  }),
];
