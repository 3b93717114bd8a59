import type { OpenAPIHono } from "@hono/zod-openapi";
import type { MiddlewareHandler } from "hono";
import { raw } from "hono/html";
import type { Deps } from "../../deps.js";
import { describeApi } from "../../features/docs/document.js";
import { type AppEnv, createRouter } from "../../http/router.js";
import { pageRenderer } from "../layout.js";
import { Reference } from "./reference.js";

const JSON_HEADERS = { "Content-Type": "application/json", "Cache-Control": "public, max-age=300" };

/** Serves the API's document as JSON and as a page. `app` must have every route by the first request. */
export function docsRoutes(app: OpenAPIHono<AppEnv>, deps: Deps, limit: MiddlewareHandler<AppEnv>) {
  let made: Promise<{ json: string; html: string }> | undefined;
  const make = async () => {
    const document = describeApi(app, deps.config);
    return { json: JSON.stringify(document), html: String(await (<Reference document={document} />)) };
  };
  const texts = () => {
    made ??= make();
    return made;
  };
  const router = createRouter();
  router.get("/openapi.json", limit, async (c) => c.body((await texts()).json, 200, JSON_HEADERS));
  router.get("/docs", limit, pageRenderer(deps), async (c) =>
    c.render(raw((await texts()).html), {
      title: "API reference",
      section: "/docs",
      dataPath: "/openapi.json",
    }),
  );
  return router;
}
