import { OpenAPIHono } from "@hono/zod-openapi";
import type { AppEnv } from "./env.js";
import { invalidInput } from "./envelope.js";

/** A router that responds `400 invalid_request` to a failed schema; each resource exports one, mounted by app.ts. */
export function createRouter(): OpenAPIHono<AppEnv> {
  return new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidInput(result.error.issues);
    },
  });
}
