import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Deps } from "../../../services/deps.js";
import type { AppEnv } from "../../env.js";
import { createRouter } from "../../router.js";
import { type ApiDocument, describeApi } from "./document.js";

/** The API's document, for machines and for people. `app` must hold every route by the first request. */
export function docsRoutes(app: OpenAPIHono<AppEnv>, { config }: Pick<Deps, "config">) {
  let document: ApiDocument | undefined;
  const read = (): ApiDocument => {
    document ??= describeApi(app, config);
    return document;
  };
  const router = createRouter();
  router.get("/openapi.json", (c) => {
    c.header("Cache-Control", "public, max-age=300");
    return c.json(read());
  });
  return router;
}
