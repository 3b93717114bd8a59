/** The feed, a contract and an agent as JSON without a key: what the pages show, in the shapes of `/v1`, at the pages' rate. */
import { type Handler, Hono, type MiddlewareHandler } from "hono";
import type { Deps } from "../deps.js";
import { listContracts } from "../features/contracts/list-contracts.js";
import { ListQuerySchema } from "../features/contracts/schema.js";
import { viewContract } from "../features/contracts/view.js";
import { readEarnings } from "../features/records/read-earnings.js";
import { readRecord } from "../features/records/read-record.js";
import { type AppEnv, clientAddress } from "../http/middleware.js";
import { sendJson } from "../http/operation.js";
import { invalidInput } from "../http/responses.js";
import { ANONYMOUS, addressOf } from "./request.js";

/**
 * `/contracts.json`, with the query of `GET /v1/contracts`, `/contracts/{id}.json`, and `/agents/{address}.json`, the
 * agent's record beside what it was paid by month.
 */
export function dataRoutes(deps: Deps, limit: MiddlewareHandler<AppEnv>): Hono<AppEnv> {
  const router = new Hono<AppEnv>();
  const showFeed: Handler<AppEnv> = async (c) => {
    const query = ListQuerySchema.safeParse(c.req.query());
    if (!query.success) throw invalidInput(query.error.issues);
    const { status, ...filter } = query.data;
    const client = clientAddress(c, deps.config.trustedProxies);
    return sendJson(
      c,
      await listContracts(deps, { ...filter, statuses: status }, { client, caller: ANONYMOUS }),
      200,
    );
  };
  const showContract: Handler<AppEnv> = async (c) => {
    const id = addressOf(c, "file", ".json");
    return c.json({ data: await viewContract(deps, id) });
  };
  const showAgent: Handler<AppEnv> = async (c) => {
    const address = addressOf(c, "file", ".json");
    const [data, earnings] = await Promise.all([readRecord(deps, address), readEarnings(deps, address)]);
    return c.json({ data, earnings });
  };
  router.get("/contracts.json", limit, showFeed);
  router.get("/contracts/:file{.+\\.json}", limit, showContract);
  router.get("/agents/:file{.+\\.json}", limit, showAgent);
  return router;
}
