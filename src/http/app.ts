import type { OpenAPIHono } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { type Deps, reading } from "../deps.js";
import { agentOperations } from "../features/agents/routes.js";
import { checkpointOperations } from "../features/checkpoints/routes.js";
import { complaintOperations } from "../features/complaints/routes.js";
import { contractOperations } from "../features/contracts/routes.js";
import { discoveryRoutes, networkOperation } from "../features/discovery/routes.js";
import { encryptionOperations } from "../features/encryption/routes.js";
import { eventOperations } from "../features/events/routes.js";
import { createEventStreams } from "../features/events/stream-events.js";
import { profileOperations } from "../features/profiles/routes.js";
import { createParameterReader, protocolOperations } from "../features/protocol/routes.js";
import { recordOperations } from "../features/records/record.js";
import { workloadOperations } from "../features/records/workload.js";
import { referenceOperations } from "../features/references/routes.js";
import { stakeOperations } from "../features/stakes/routes.js";
import { systemRoutes } from "../features/system/routes.js";
import { voteOperations } from "../features/votes/routes.js";
import { webhookOperations } from "../features/webhooks/routes.js";
import { docsRoutes } from "../pages/reference.js";
import { dataRoutes, limitPages, pageNotFound, pageRoutes } from "../pages/routes.js";
import { type ConcurrencyLimit, createConcurrencyLimit } from "../scheduling.js";
import {
  type AppEnv,
  createRouter,
  crossOrigin,
  limitDownloads,
  rateLimit,
  requestContext,
  securityHeaders,
} from "./middleware.js";
import { notFound, onError } from "./responses.js";
import { rawBody } from "./schemas.js";

/** Every endpoint under /v1, in the order of the published document. */
const OPERATIONS = [
  ...protocolOperations,
  ...agentOperations,
  ...contractOperations,
  ...voteOperations,
  ...stakeOperations,
  ...workloadOperations,
  ...recordOperations,
  ...checkpointOperations,
  ...complaintOperations,
  ...profileOperations,
  ...referenceOperations,
  ...encryptionOperations,
  ...eventOperations,
  ...webhookOperations,
  networkOperation,
];

const QUOTES_AT_ONCE = 16;
/** A hung node or database must not stop quotes that do not need it. */
const QUOTE_PATIENCE = { maxCountedMs: 250, maxWaitMs: 10_000 };

/** The HTTP service, ready for `app.fetch` or `app.request`. Opens no connections: they are all in `deps`. */
export function createApp({
  quoting = createConcurrencyLimit(QUOTES_AT_ONCE, QUOTE_PATIENCE),
  ...given
}: Omit<Deps, "streams" | "readParameters" | "quoting"> & {
  quoting?: ConcurrencyLimit | undefined;
}): OpenAPIHono<AppEnv> {
  const { config, readDb: db, feed } = given;
  const deps: Deps = {
    ...given,
    streams: createEventStreams({ db, feed }, { maxStreams: config.eventStreams }),
    readParameters: createParameterReader(given),
    quoting,
  };
  const app = createRouter();
  app.onError(onError);

  app.use(requestContext(deps), securityHeaders, crossOrigin, limitDownloads(config));
  app.use("/v1/*", rateLimit(deps), rawBody(LIMITS.bodyBytes));

  app.route("/", systemRoutes(deps));
  for (const operation of OPERATIONS) operation.mount(app, deps);
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
