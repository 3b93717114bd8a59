import { createRoute } from "@hono/zod-openapi";
import type { Deps } from "../../deps.js";
import { dataResponse, errorResponses } from "../../http/envelope.js";
import { createRouter } from "../../http/router.js";
import { createParameterReader } from "./parameters.js";
import { presentLimits } from "./present-limits.js";
import { presentParameters } from "./present-parameters.js";
import { LimitsSchema, ProtocolSchema } from "./schema.js";

const getProtocol = createRoute({
  method: "get",
  path: "/v1/protocol",
  operationId: "getProtocol",
  tags: ["Protocol"],
  summary: "Read the global protocol parameters",
  responses: {
    200: dataResponse("Parameters of future Working Contracts", ProtocolSchema),
    ...errorResponses("rate_limited", "unavailable"),
  },
});

const getLimits = createRoute({
  method: "get",
  path: "/v1/limits",
  operationId: "getLimits",
  tags: ["Protocol"],
  summary: "Read every limit and window that is no protocol parameter",
  responses: { 200: dataResponse("Limits", LimitsSchema), ...errorResponses("rate_limited", "unavailable") },
});

export function protocolRoutes(deps: Pick<Deps, "publicClient" | "deployment" | "config">) {
  const readParameters = createParameterReader(deps);
  return createRouter()
    .openapi(getProtocol, async (c) => c.json({ data: presentParameters(await readParameters()) }, 200))
    .openapi(getLimits, async (c) =>
      c.json({ data: presentLimits(deps.config, await readParameters()) }, 200),
    );
}
