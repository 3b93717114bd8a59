import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { dataResponse, errorResponses, jsonBody } from "../../../http/envelope.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { PAYMENT_HEADERS_NOTE, PAYMENT_REQUIRED, sendAnswer } from "../../../http/middleware/payment.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { submitVotes } from "../submit-votes.js";
import { VoteSchema, VotesBodySchema } from "./schema.js";

const route = createRoute({
  method: "post",
  path: "/v1/contracts/{id}/votes",
  operationId: "submitVotes",
  tags: ["Votes"],
  summary: "Vote on all criteria of a disputed contract",
  description: `${PAYMENT_HEADERS_NOTE} The bond covers all criteria. Once per Backup Agent and contract; sealed until the tally.`,
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema, body: jsonBody(VotesBodySchema) },
  responses: {
    200: {
      ...dataResponse("The caller's votes by criterion", z.array(VoteSchema)),
      headers: {
        "Vote-Salt": {
          description:
            "32 bytes, hex: with it the voter can open its ballot on chain (`openVote`) should the service fail to, within a day of the window's end",
          schema: { type: "string" },
        },
      },
    },
    ...PAYMENT_REQUIRED,
    ...errorResponses(
      "unauthorized",
      "invalid_request",
      "not_found",
      "forbidden",
      "conflict",
      "payload_too_large",
      "unsupported_media_type",
      "rate_limited",
      "unavailable",
      "settlement_pending",
    ),
  },
});

export function submitVotesRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { votes } = c.req.valid("json");
    const call = {
      id,
      caller: c.get("caller"),
      rawBody: c.get("rawBody"),
      headers: c.req.raw.headers,
      votes,
    };
    return sendAnswer(c, await submitVotes(deps, call));
  });
}
