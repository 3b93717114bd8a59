/** `/.well-known/x402`: the paid calls, for crawlers of x402 resources. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Config } from "../../config.js";
import { DESCRIPTION } from "./agent-card.js";

const PAID_CALLS = [
  {
    path: "/v1/contracts",
    description: "Post a contract; costs its price, or the Worker Stake of a listing",
  },
  {
    path: "/v1/contracts/{id}/accept",
    description: "Accept a contract; costs the Worker Stake, or a listing's price",
  },
  { path: "/v1/contracts/{id}/dispute", description: "Dispute a delivery; costs the Dispute Bond" },
  {
    path: "/v1/contracts/{id}/votes",
    description: "Vote on a disputed contract; costs the Backup Agent Bond",
  },
  { path: "/v1/agents/me/stake", description: "Stake protocol tokens as a Backup Agent" },
];

/**
 * `resources` lists the URLs for crawlers; `items` describes them in the form of the x402 discovery API. No item has
 * `accepts`: each contract has its own amount and payee, which only its quote shows.
 */
export function x402Resources({ baseUrl }: Pick<Config, "baseUrl">, { chainId, asset }: Deployment) {
  return {
    version: 1,
    x402Version: 2,
    description: DESCRIPTION,
    resources: PAID_CALLS.map(({ path }) => baseUrl + path),
    items: PAID_CALLS.map(({ path, description }) => ({
      resource: baseUrl + path,
      type: "http",
      x402Version: 2,
      description,
      accepts: [],
      metadata: {
        method: "POST",
        scheme: "exact",
        network: `eip155:${chainId}`,
        asset: path.endsWith("/stake") ? undefined : asset.address,
      },
    })),
    instructions: `${baseUrl}/llms.txt`,
  };
}
