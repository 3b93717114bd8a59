import {
  type Context,
  type ErrorHandler,
  type Handler,
  Hono,
  type MiddlewareHandler,
  type NotFoundHandler,
} from "hono";
import { createMiddleware } from "hono/factory";
import type { Deps } from "../deps.js";
import { listContracts } from "../features/contracts/list-contracts.js";
import { ListQuerySchema } from "../features/contracts/schema.js";
import { viewContract } from "../features/contracts/view.js";
import { EventStreamQuerySchema, LastEventIdSchema } from "../features/events/routes.js";
import { sendStream } from "../features/events/stream-events.js";
import { readEarnings, readRecord } from "../features/records/routes.js";
import { sendJson } from "../http/endpoint.js";
import { type AppEnv, createRateLimiter, takeOrRefuse } from "../http/middleware.js";
import { inReadQueue } from "../http/read-queue.js";
import { invalidInput, setError, toAppError } from "../http/responses.js";
import { rawBody } from "../http/schemas.js";
import { showAgent } from "./agent.js";
import { showContract } from "./contract/page.js";
import { showFeed } from "./feed.js";
import { ANONYMOUS, addressOf, mountAssets, pageRenderer } from "./layout.js";
import { operatorPages } from "./operator.js";
import { showParameters } from "./parameters.js";
import { showPost } from "./post.js";
import { showSimulator } from "./simulator.js";

/** One rate limit per IP address for all pages. Create it once per service so that the pages share it. */
export function limitPages({ config }: Pick<Deps, "config">) {
  const limiter = createRateLimiter(config.rateLimits.pages);
  return createMiddleware<AppEnv>(async (c, next) => {
    takeOrRefuse(c, "pages", limiter, c.get("ip"));
    await next();
  });
}

const BODY_BYTES = 4_096;

/** Pages that show the API's data as HTML. They need no key and no script, and are rate limited per IP address. */
export function pageRoutes(deps: Deps, limit: MiddlewareHandler<AppEnv>): Hono<AppEnv> {
  const router = new Hono<AppEnv>();
  router.onError(onPageError);
  mountAssets(router);

  const frame = [pageRenderer(deps), rawBody(BODY_BYTES), limit] as const;
  const show = (path: string, handler: Handler<AppEnv>) => router.get(path, ...frame, handler);
  show("/", showFeed(deps));
  show("/contracts/:id", showContract(deps));
  show("/agents/:address", showAgent(deps));
  show("/parameters", showParameters(deps));
  show("/post", showPost(deps));
  show("/simulator", showSimulator(deps));
  show("/live", streamChanges(deps));
  if (deps.config.operatorKey !== undefined) {
    const operator = operatorPages(deps, deps.config.operatorKey);
    show("/operator", operator.show);
    router.post("/operator", ...frame, operator.enter);
    router.post("/operator/leave", ...frame, operator.leave);
  }
  return router;
}

/** Feed, contract and agent as JSON without a key, in the shapes of `/v1` and at the pages' rate. */
export function dataRoutes(deps: Deps, limit: MiddlewareHandler<AppEnv>): Hono<AppEnv> {
  const router = new Hono<AppEnv>();
  router.get("/contracts.json", limit, async (c) => {
    const query = ListQuerySchema.safeParse(c.req.query());
    if (!query.success) throw invalidInput(query.error.issues);
    const reader = { ip: c.get("ip"), caller: ANONYMOUS };
    return sendJson(c, await listContracts(deps, query.data, reader), 200);
  });
  router.get("/contracts/:file{.+\\.json}", limit, async (c) => {
    const id = addressOf(c, "file", ".json");
    return sendJson(c, { data: await viewContract(deps, id) }, 200);
  });
  router.get("/agents/:file{.+\\.json}", limit, async (c) => {
    const address = addressOf(c, "file", ".json");
    const read = () => Promise.all([readRecord(deps, address), readEarnings(deps, address)]);
    const [data, earnings] = await inReadQueue({ ip: c.get("ip"), caller: ANONYMOUS }, read);
    return sendJson(c, { data, earnings }, 200);
  });
  return router;
}

/** `/live`: the pages' stream: public events only, limited by IP address. As GET /v1/events/stream otherwise. */
function streamChanges({ streams }: Pick<Deps, "streams">) {
  return (c: Context<AppEnv>): Promise<Response> => {
    const query = EventStreamQuerySchema.safeParse(c.req.query());
    if (!query.success) throw invalidInput(query.error.issues);
    const { after = null, filter } = query.data;
    const seen = LastEventIdSchema.safeParse({ "last-event-id": c.req.header("last-event-id") });
    const ip = c.get("ip");
    return sendStream(c, (signal) =>
      streams.open({
        caller: ANONYMOUS,
        countedAs: ip,
        ip,
        after: seen.data?.["last-event-id"] ?? after,
        filter,
        signal,
      }),
    );
  };
}

const ERROR_TITLES: Record<number, string> = {
  400: "Invalid request",
  404: "Page not found",
  429: "Too many requests",
  503: "Temporarily unavailable",
};

/** Renders an error as a page, with the same status and headers as the API. */
const onPageError: ErrorHandler<AppEnv> = (error, c) => {
  const known = toAppError(error, c);
  if (known.status >= 500) c.get("logger")().error({ err: error }, known.code);
  setError(c, known);
  return renderError(c, ERROR_TITLES[known.status] ?? "Something went wrong", known.options.message);
};

/** Renders a page for unknown paths if a browser requests one; otherwise responds as `api` does. */
export function pageNotFound(
  deps: Parameters<typeof pageRenderer>[0],
  api: NotFoundHandler<AppEnv>,
): NotFoundHandler<AppEnv> {
  const render = pageRenderer(deps);
  return async (c) => {
    const isBrowser = c.req.method === "GET" && c.req.header("accept")?.includes("text/html") === true;
    if (!isBrowser || c.req.path.startsWith("/v1/")) return api(c);
    await render(c, async () => {});
    c.status(404);
    c.set("errorCode", "not_found");
    return renderError(c, "Page not found", `There is no page at ${c.req.path}.`);
  };
}

function renderError(c: Context<AppEnv>, title: string, message: string) {
  return c.render(
    <>
      <h1>{title}</h1>
      <p>{message}</p>
      <p>
        <a href="/">All contracts</a>
      </p>
    </>,
    { title },
  );
}
