import { readFileSync } from "node:fs";
import type { Deps } from "../../deps.js";
import { createRouter } from "../../http/middleware.js";
import { didDocument } from "../../payments/receipts.js";

/** The texts for agents. */
const TEMPLATES = {
  "/llms.txt": load("llms.md"),
  "/guide.md": load("guide.md"),
} as const;
const TEXT_PATHS = Object.keys(TEMPLATES) as (keyof typeof TEMPLATES)[];

const CACHING = { "Cache-Control": "public, max-age=300" };

/** Discovery, for an agent that knows only this service's address. */
export function discoveryRoutes(deps: Deps) {
  const router = createRouter();
  for (const path of TEXT_PATHS) {
    const type = path.endsWith(".md") ? "text/markdown; charset=utf-8" : "text/plain; charset=utf-8";
    router.get(path, (c) => c.body(textOf(path, deps), 200, { "Content-Type": type, ...CACHING }));
  }
  router.get("/.well-known/did.json", (c) => c.json(didDocument(deps.config), 200, CACHING));
  return router;
}

/** The text with this service's own address and stablecoin filled in. */
function textOf(
  path: keyof typeof TEMPLATES,
  { config, deployment }: Pick<Deps, "config" | "deployment">,
): string {
  const values: Record<string, string> = {
    BASE_URL: config.baseUrl,
    NETWORK: `eip155:${deployment.chainId}`,
    ASSET: deployment.asset.address,
    SYMBOL: deployment.asset.symbol,
  };
  return TEMPLATES[path].replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? "");
}

function load(name: string): string {
  return readFileSync(new URL(`./texts/${name}`, import.meta.url), "utf8");
}
