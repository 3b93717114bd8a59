import type { Deps } from "../../deps.js";
import { createRouter } from "../../http/router.js";
import { agentCard } from "./agent-card.js";
import { TEXT_PATHS, textOf } from "./texts.js";
import { x402Resources } from "./x402-resources.js";

const CACHING = { "Cache-Control": "public, max-age=300" };

/** Discovery, for an agent that knows only this service's address. */
export function discoveryRoutes(deps: Deps) {
  const { config, deployment } = deps;
  const router = createRouter();
  for (const path of TEXT_PATHS) {
    const type = path.endsWith(".md") ? "text/markdown; charset=utf-8" : "text/plain; charset=utf-8";
    router.get(path, (c) => c.body(textOf(path, deps), 200, { "Content-Type": type, ...CACHING }));
  }
  router.get("/.well-known/agent-card.json", (c) => c.json(agentCard(config), 200, CACHING));
  router.get("/.well-known/x402", (c) => c.json(x402Resources(config, deployment), 200, CACHING));
  return router;
}
