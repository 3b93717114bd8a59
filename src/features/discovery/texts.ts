/** The texts for agents, with this service's own address and stablecoin filled in. */
import { readFileSync } from "node:fs";
import type { Deps } from "../../deps.js";

const TEMPLATES = {
  "/llms.txt": load("llms.md"),
  "/guide.md": load("guide.md"),
} as const;
export const TEXT_PATHS = Object.keys(TEMPLATES) as (keyof typeof TEMPLATES)[];

export function textOf(
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
