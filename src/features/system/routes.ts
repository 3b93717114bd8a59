/** Probes for supervisors and load balancers. */

import { createRoute, z } from "@hono/zod-openapi";
import { sql } from "drizzle-orm";
import { indexedBlock } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { createRouter } from "../../http/middleware.js";
import { dataResponse, errorResponses } from "../../http/responses.js";
import { orNull } from "../../scheduling.js";

const part = { ok: z.boolean(), block: z.number().nullable() };

const ReadinessSchema = z
  .object({
    ready: z.boolean(),
    database: z.object({ ok: z.boolean() }),
    chain: z.object({ ...part, ageSeconds: z.number().nullable() }),
    indexer: z.object({ ...part, lagBlocks: z.number().nullable() }),
  })
  .openapi("Readiness");

/** `ageSeconds`: of the newest block by the wall clock; 0 if the chain's clock is ahead. */
export type Readiness = z.infer<typeof ReadinessSchema>;

/** Checks Postgres, the node and the indexer's progress; never rejects. */
export async function checkReadiness(
  { db, publicClient, config }: Pick<Deps, "db" | "publicClient" | "config">,
  now: () => number = Date.now,
): Promise<Readiness> {
  const { maxHeadAge, maxIndexLag } = config.readiness;
  const [alive, head, indexed] = await Promise.all([
    // Locks nothing, but fails in a database that accepts no writes.
    orNull(db.execute(sql`select from app.migration limit 0 for update`)),
    orNull(publicClient.getBlock({ blockTag: "latest" })),
    orNull(indexedBlock(db)),
  ]);
  const ageSeconds = head && Math.max(0, Math.floor(now() / 1000) - Number(head.timestamp));
  // The indexer can have seen a block that this node's response did not have yet.
  const lagBlocks = head && indexed !== null ? Math.max(0, Number(head.number - indexed)) : null;
  const database = { ok: alive !== null };
  const chain = {
    ok: ageSeconds !== null && ageSeconds <= maxHeadAge,
    block: head && Number(head.number),
    ageSeconds,
  };
  const indexer = {
    ok: lagBlocks !== null && lagBlocks <= maxIndexLag,
    block: indexed === null ? null : Number(indexed),
    lagBlocks,
  };
  return { ready: database.ok && chain.ok && indexer.ok, database, chain, indexer };
}

const getHealth = createRoute({
  method: "get",
  path: "/health",
  operationId: "getHealth",
  tags: ["System"],
  summary: "Whether the process responds",
  responses: { 200: dataResponse("It does", z.object({ status: z.literal("ok") })) },
});

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
  /** Concurrent calls share one look: each takes several connections. */
  let checking: Promise<Readiness> | undefined;
  let exposing: ReturnType<NonNullable<typeof metrics>["expose"]> | undefined;
  if (metrics !== undefined) {
    // Text for Prometheus, so not in the API's document. The proxy should not expose it.
    router.get("/metrics", async (c) => {
      exposing ??= metrics.expose().finally(() => {
        exposing = undefined;
      });
      const { contentType, text } = await exposing;
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
