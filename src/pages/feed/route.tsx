import type { Context } from "hono";
import type { Deps } from "../../deps.js";
import { listContracts } from "../../features/contracts/list-contracts.js";
import { ListQuerySchema } from "../../features/contracts/schema.js";
import { invalidInput } from "../../http/responses.js";
import type { AppEnv } from "../../http/router.js";
import { FeedPage, feedPath } from "./page.js";

const PAGE_SIZE = "20";

/** `/`: the filters of `GET /v1/contracts`. An empty form field counts as absent. */
export function showFeed(deps: Pick<Deps, "db" | "clock">) {
  return async (c: Context<AppEnv>) => {
    const query = Object.fromEntries(Object.entries(c.req.query()).filter(([, value]) => value !== ""));
    const now = deps.clock.now();
    const parsed = ListQuerySchema.safeParse({ limit: PAGE_SIZE, ...query });
    if (!parsed.success) {
      c.status(400);
      const fault = invalidInput(parsed.error.issues).options.message;
      return c.render(<FeedPage query={query} result={null} fault={fault} now={now} />, {
        title: "Contracts",
        section: "/",
      });
    }
    const { status, ...filter } = parsed.data;
    const { data, nextCursor } = await listContracts(deps, { ...filter, statuses: status });
    return c.render(
      <FeedPage query={query} result={{ contracts: data, nextCursor }} fault={null} now={now} />,
      {
        title: "Contracts",
        section: "/",
        dataPath: feedPath(query, {}).replace("/", "/v1/contracts"),
        live: {},
      },
    );
  };
}
