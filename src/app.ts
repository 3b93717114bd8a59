import type { OpenAPIHono } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { type Deps, reading } from "./deps.js";
import { agentEndpoints } from "./features/agents/routes.js";
import { checkpointEndpoints } from "./features/checkpoints/routes.js";
import { complaintEndpoints } from "./features/complaints/routes.js";
import { contractEndpoints } from "./features/contracts/routes.js";
import { discoveryRoutes, networkEndpoint } from "./features/discovery/routes.js";
import { encryptionEndpoints } from "./features/encryption/routes.js";
import { eventEndpoints } from "./features/events/routes.js";
import { createEventStreams } from "./features/events/stream-events.js";
import { profileEndpoints } from "./features/profiles/routes.js";
import { createParameterReader, protocolEndpoints } from "./features/protocol/routes.js";
import { recordEndpoints } from "./features/records/routes.js";
import { referenceEndpoints } from "./features/references/routes.js";
import { stakeEndpoints } from "./features/stakes/routes.js";
import { systemRoutes } from "./features/system/routes.js";
import { voteEndpoints } from "./features/votes/routes.js";
import { webhookEndpoints } from "./features/webhooks/routes.js";
import {
  type AppEnv,
  createRouter,
  crossOrigin,
  limitDownloads,
  rateLimit,
  requestContext,
  securityHeaders,
} from "./http/middleware.js";
import { notFound, onError } from "./http/responses.js";
import { rawBody } from "./http/schemas.js";
import { docsRoutes } from "./pages/reference.js";
import { dataRoutes, limitPages, pageNotFound, pageRoutes } from "./pages/routes.js";
import { type ConcurrencyLimit, createConcurrencyLimit } from "./scheduling.js";

/** Every endpoint under /v1, in the order of the published document. */
const ENDPOINTS = [
  ...protocolEndpoints,
  ...agentEndpoints,
  ...contractEndpoints,
  ...voteEndpoints,
  ...stakeEndpoints,
  ...recordEndpoints,
  ...checkpointEndpoints,
  ...complaintEndpoints,
  ...profileEndpoints,
  ...referenceEndpoints,
  ...encryptionEndpoints,
  ...eventEndpoints,
  ...webhookEndpoints,
  networkEndpoint,
];

const QUOTES_AT_ONCE = 16;
/** A hung node or database must not stop quotes that do not need it. */
const QUOTE_PATIENCE = { maxCountedMs: 250, maxWaitMs: 10_000 };

/** The HTTP service, ready for `app.fetch` or `app.request`. Opens no connections: they are all in `deps`. */
export function createApp({
  inQuoteTurn = createConcurrencyLimit(QUOTES_AT_ONCE, QUOTE_PATIENCE),
  ...given
}: Omit<Deps, "streams" | "readParameters" | "inQuoteTurn"> & {
  inQuoteTurn?: ConcurrencyLimit | undefined;
}): OpenAPIHono<AppEnv> {
  const { config, readDb: db, feed } = given;
  const deps: Deps = {
    ...given,
    streams: createEventStreams({ db, feed }, { maxStreams: config.eventStreams }),
    readParameters: createParameterReader(given),
    inQuoteTurn,
  };
  const app = createRouter();
  app.onError(onError);

  app.use(requestContext(deps), securityHeaders, crossOrigin, limitDownloads(config));
  app.use("/v1/*", rateLimit(deps), rawBody(LIMITS.bodyBytes));

  app.route("/", systemRoutes(deps));
  for (const endpoint of ENDPOINTS) endpoint.mount(app, deps);
  app.route("/", discoveryRoutes(deps));
  const limit = limitPages(deps);
  app.route("/", docsRoutes(app, deps, limit));
  app.route("/", dataRoutes(reading(deps), limit));
  app.route("/", pageRoutes(reading(deps), limit));
  app.notFound(pageNotFound(deps, notFound(app)));
  return app;
}

/** The routes of every process, even one without the API: health, readiness, metrics. */
export function createProbeApp(deps: Parameters<typeof systemRoutes>[0] & Pick<Deps, "logger">) {
  const app = createRouter();
  app.onError(onError);
  app.use(requestContext(deps), securityHeaders);
  app.route("/", systemRoutes(deps));
  app.notFound(notFound(app));
  return app;
}
