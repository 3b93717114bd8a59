import type { OpenAPIHono } from "@hono/zod-openapi";
import { pageRenderer } from "../../../pages/layout.js";
import type { Deps } from "../../../services/deps.js";
import type { AppEnv } from "../../env.js";
import { createRouter } from "../../router.js";
import { type ApiDocument, describeApi } from "./document.js";
import { Reference } from "./reference.js";

/** The API's document, for machines and for people. `app` must hold every route by the first request. */
export function docsRoutes(app: OpenAPIHono<AppEnv>, deps: Deps) {
  let described: ApiDocument | undefined;
  const document = (): ApiDocument => {
    described ??= describeApi(app, deps.config);
    return described;
  };
  const router = createRouter();
  router.get("/openapi.json", (c) => c.json(document(), 200, { "Cache-Control": "public, max-age=300" }));
  router.get("/docs", pageRenderer(deps), (c) =>
    c.render(<Reference document={document()} />, {
      title: "API reference",
      section: "/docs",
      dataPath: "/openapi.json",
    }),
  );
  return router;
}
