import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../deps.js";
import { dataResponse, errorResponses } from "../../http/envelope.js";
import { createRouter } from "../../http/router.js";

const address = () => z.string().openapi({ pattern: "^0x[0-9a-f]{40}$" });

const NetworkSchema = z
  .object({
    baseUrl: z
      .url()
      .openapi({ description: "The service's own name, with which every quote's resource begins" }),
    chainId: z.int(),
    network: z.string().openapi({ description: "The chain's CAIP-2 name, as in quotes" }),
    time: z.iso.datetime().openapi({ description: "The chain's clock, by which every deadline is judged" }),
    startBlock: z.int().openapi({ description: "Nothing of the protocol happened before it" }),
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

const route = createRoute({
  method: "get",
  path: "/v1/network",
  operationId: "getNetwork",
  tags: ["Discovery"],
  summary: "Read where the protocol lives on chain, and the chain's time",
  description:
    "What a payer pins: with these addresses it can recompute every quote's `payTo`, and verify every contract without the service.",
  responses: {
    200: dataResponse("The network", NetworkSchema),
    ...errorResponses("invalid_request", "rate_limited", "unavailable"),
  },
});

export function networkRoute({ config, clock, deployment }: Pick<Deps, "config" | "clock" | "deployment">) {
  return createRouter().openapi(route, (c) => {
    const { chainId, startBlock, domain, asset } = deployment;
    const { factory, implementation, relay, delegation, registry, protocolToken } = deployment;
    const network = {
      baseUrl: config.baseUrl,
      chainId,
      network: `eip155:${chainId}`,
      time: new Date(clock.now() * 1000).toISOString(),
      startBlock,
      domain,
      factory,
      implementation,
      relay,
      delegation,
      registry,
      protocolToken,
      asset,
    };
    return c.json({ data: network }, 200);
  });
}
