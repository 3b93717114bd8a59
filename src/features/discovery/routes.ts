/** Discovery, for an agent that knows only this service's address. */
import { readFileSync } from "node:fs";
import { z } from "@hono/zod-openapi";
import { isoTime } from "@working-contracts/protocol/time";
import type { Deps } from "../../deps.js";
import { data, endpoints } from "../../http/endpoint.js";
import { createRouter } from "../../http/middleware.js";
import { didDocument } from "../../payments/x402.js";

const address = () => z.string().openapi({ pattern: "^0x[0-9a-f]{40}$" });

const NetworkSchema = z
  .object({
    baseUrl: z
      .url()
      .openapi({ description: "The service's own origin; every quote's resource starts with it" }),
    chainId: z.int(),
    network: z.string().openapi({ description: "The chain's CAIP-2 name, as in quotes" }),
    time: z.iso.datetime().openapi({ description: "The chain's clock, by which every deadline is judged" }),
    startBlock: z.int().openapi({ description: "The protocol was deployed at this block" }),
    domain: z.string().openapi({ description: "Name of the service in every challenge" }),
    factory: address().openapi({ description: "Deploys the escrows" }),
    implementation: address().openapi({ description: "Code of the escrows" }),
    relay: address().openapi({ description: "The operator that a challenge names" }),
    delegation: address(),
    registry: address().openapi({ description: "Holds the stakes of Backup Agents" }),
    protocolToken: address().openapi({ description: "18 decimals" }),
    asset: z
      .object({
        address: address(),
        name: z.string(),
        version: z.string(),
        symbol: z.string(),
        decimals: z.int(),
      })
      .openapi({ description: "The stablecoin, with its EIP-712 name and version" }),
  })
  .openapi("Network");

export const networkEndpoint = endpoints("Discovery").get("/v1/network", {
  operationId: "getNetwork",
  summary: "Read the protocol's addresses on chain, and the chain's time",
  description:
    "Pin these addresses: with them a payer can recompute every quote's `payTo`, and verify every contract without the service.",
  auth: "none",
  returns: data("The network", NetworkSchema),
  handle: ({ config, clock, deployment }) => {
    const { networkName: _, startBlockHash: __, ...published } = deployment;
    return {
      baseUrl: config.baseUrl,
      network: `eip155:${deployment.chainId}`,
      time: isoTime(clock.now()),
      ...published,
    };
  },
});

const TEMPLATES = {
  "/llms.txt": load("llms.md"),
  "/guide.md": load("guide.md"),
} as const;
const TEXT_PATHS = Object.keys(TEMPLATES) as (keyof typeof TEMPLATES)[];

const CACHING = { "Cache-Control": "public, max-age=300" };

/** The texts for agents, and the document with the key that signs receipts. */
export function discoveryRoutes(deps: Deps) {
  const router = createRouter();
  for (const path of TEXT_PATHS) {
    const type = path.endsWith(".md") ? "text/markdown; charset=utf-8" : "text/plain; charset=utf-8";
    const text = textOf(path, deps);
    router.get(path, (c) => c.body(text, 200, { "Content-Type": type, ...CACHING }));
  }
  const document = didDocument(deps.config);
  router.get("/.well-known/did.json", (c) => c.json(document, 200, CACHING));
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
