import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { dataResponse, errorResponses } from "../../http/responses.js";
import { createRouter } from "../../http/router.js";
import { checkReadiness, type Readiness } from "./readiness.js";

const getHealth = createRoute({
  method: "get",
  path: "/health",
  operationId: "getHealth",
  tags: ["System"],
  summary: "Whether the process responds",
  responses: { 200: dataResponse("It does", z.object({ status: z.literal("ok") })) },
});

const part = { ok: z.boolean(), block: z.number().nullable() };

const ReadinessSchema = z
  .object({
    ready: z.boolean(),
    database: z.object({ ok: z.boolean() }),
    chain: z.object({ ...part, ageSeconds: z.number().nullable() }),
    indexer: z.object({ ...part, lagBlocks: z.number().nullable() }),
  })
  .openapi("Readiness");

const getReady = createRoute({
  method: "get",
  path: "/ready",
  operationId: "getReady",
  tags: ["System"],
  summary: "Whether database, chain and indexer can serve requests",
  responses: { 200: dataResponse("All are", ReadinessSchema), ...errorResponses("unavailable") },
});

/** Probes for supervisors and load balancers; no key, no rate limit. */
export function systemRoutes(deps: Pick<Deps, "db" | "publicClient" | "config" | "metrics">) {
  const router = createRouter();
  const { metrics } = deps;
  /** Concurrent probes share one check. */
  let checking: Promise<Readiness> | undefined;
  if (metrics !== undefined) {
    // Text for Prometheus, so not in the API's document. The proxy should not expose it.
    router.get("/metrics", async (c) => {
      const { contentType, text } = await metrics.expose();
      return c.body(text, 200, { "Content-Type": contentType });
    });
  }
  return router
    .openapi(getHealth, (c) => c.json({ data: { status: "ok" as const } }, 200))
    .openapi(getReady, async (c) => {
      checking ??= checkReadiness(deps).finally(() => {
        checking = undefined;
      });
      const readiness = await checking;
      if (!readiness.ready) {
        const failing = (["database", "chain", "indexer"] as const).filter((name) => !readiness[name].ok);
        throw new AppError("unavailable", {
          message: `Not ready: ${failing.join(", ")}.`,
          details: readiness,
          retryable: true,
        });
      }
      return c.json({ data: readiness }, 200);
    });
}
