import type { Context } from "hono";
import type { StakeDeps } from "../../features/stakes/view.js";
import type { AppEnv } from "../../http/router.js";
import { short } from "../format.js";
import { addressOf } from "../path-address.js";
import { loadAgentPage } from "./load.js";
import { AgentPage } from "./page.js";

/** `/agents/{address}`: a page for any address, even one without activity. */
export function showAgent(deps: StakeDeps) {
  return async (c: Context<AppEnv>) => {
    const address = addressOf(c, "address");
    const data = await loadAgentPage(deps, address);
    return c.render(<AgentPage data={data} />, {
      title: data.profile.displayName ?? `Agent ${short(address)}`,
      dataPath: `/v1/agents/${address}/record`,
      live: { agent: address },
    });
  };
}
