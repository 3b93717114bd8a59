/** An app over in-memory dependencies, with a few routes to call. */
import { createRoute, z } from "@hono/zod-openapi";
import { createApp } from "../../../src/app.js";
import { type Config, parseConfig } from "../../../src/config.js";
import { createKey } from "../../../src/http/key-owners.js";
import { createRouter } from "../../../src/http/middleware.js";
import { dataResponse } from "../../../src/http/responses.js";
import { createLogger } from "../../../src/logger.js";

export const CALLER = `0x${"ab".repeat(20)}`;
export const { apiKey: KEY } = createKey("test");

export function testConfig(settings: Record<string, string> = {}): Config {
  return parseConfig({
    DATABASE_URL: "postgres://u:p@localhost/db",
    RPC_URL: "http://localhost:8545",
    DEPLOYMENT: "deployment.json",
    MASTER_KEY: "22".repeat(32),
    RATE_LIMIT_READS: "0",
    RATE_LIMIT_WRITES: "0",
    RATE_LIMIT_ANONYMOUS: "0",
    RATE_LIMIT_CHALLENGES: "0",
    ...settings,
  });
}

/** Every well-formed key belongs to CALLER. */
export function testApp(settings: Record<string, string> = {}, deps: object = {}) {
  const logs: string[] = [];
  const app = createApp({
    config: testConfig(settings),
    logger: createLogger("trace", { write: (line: string) => void logs.push(line) }),
    keys: { keptOwnerOf: () => CALLER },
    deployment: { domain: "contracts.example", chainId: 84_532, asset: { symbol: "TUSD" } },
    ...deps,
  } as never);

  const routes = createRouter();
  const echo = createRoute({
    method: "post",
    path: "/v1/test/{id}/echo",
    request: {
      body: {
        required: true,
        content: {
          "application/json": {
            schema: z.object({ budgetOrPrice: z.string(), list: z.array(z.number()).optional() }),
          },
        },
      },
    },
    responses: { 200: dataResponse("echo", z.unknown()) },
  });
  routes.openapi(echo, (c) => c.json({ data: c.req.valid("json") }, 200));
  const act = createRoute({
    method: "post",
    path: "/v1/test/{id}/act",
    responses: { 200: dataResponse("act", z.string()) },
  });
  routes.openapi(act, (c) => c.json({ data: c.get("rawBody").toString("utf8") }, 200));
  const read = createRoute({
    method: "get",
    path: "/v1/test/{id}/act",
    responses: { 200: dataResponse("read", z.string()) },
  });
  routes.openapi(read, (c) => c.json({ data: "read" }, 200));
  routes.get("/v1/broken", () => {
    throw new Error("secret detail of the database");
  });
  app.route("/", routes);
  return { app, logs };
}

export const JSON_TYPE = { "Content-Type": "application/json" };
export const AUTHORIZED = { Authorization: `Bearer ${KEY}` };
