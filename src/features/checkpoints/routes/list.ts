import { Readable } from "node:stream";
import { createRoute } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Deps } from "../../../deps.js";
import { errorResponses } from "../../../http/envelope.js";
import { listOf, PageQuerySchema } from "../../../http/pagination.js";
import { createRouter } from "../../../http/router.js";
import { ContractParamsSchema } from "../../contracts/routes/schema.js";
import { loadContract } from "../../contracts/view.js";
import { listCheckpoints, streamCheckpoints } from "../list-checkpoints.js";
import { CheckpointSchema } from "./schema.js";

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/checkpoints",
  operationId: "listCheckpoints",
  tags: ["Checkpoints"],
  summary: "List the checkpoints of a contract, oldest first",
  description: "Everything in one answer, unless `limit` or `cursor` is given.",
  request: { params: ContractParamsSchema, query: PageQuerySchema },
  responses: {
    200: {
      description: "Checkpoints",
      content: { "application/json": { schema: listOf(CheckpointSchema).openapi("CheckpointList") } },
    },
    ...errorResponses("invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function listCheckpointsRoute(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    const { id } = c.req.valid("param");
    const { limit, cursor } = c.req.valid("query");
    await loadContract(deps.db, id);
    if (limit === undefined && cursor === undefined) {
      const text = listText(streamCheckpoints(deps.db, id));
      // Read before the status goes out: a database that does not answer is still a 503.
      const first = await text.next();
      const stream = Readable.toWeb(Readable.from(prepend(first.value, text))) as ReadableStream;
      return c.body(stream, 200, { "Content-Type": "application/json" }) as never;
    }
    const page = await listCheckpoints(deps.db, { contractId: id, limit: limit ?? LIMITS.pageSize, cursor });
    return c.json({ data: page.checkpoints, nextCursor: page.nextCursor }, 200);
  });
}

/** The text of `{ "data": [...] }`, item by item. */
async function* listText(items: AsyncIterable<unknown>): AsyncGenerator<string, undefined> {
  let separator = '{"data":[';
  for await (const item of items) {
    yield separator + JSON.stringify(item);
    separator = ",";
  }
  yield separator === "," ? "]}" : `${separator}]}`;
}

async function* prepend(first: string | undefined, rest: AsyncIterable<string>): AsyncGenerator<string> {
  if (first !== undefined) yield first;
  yield* rest;
}
