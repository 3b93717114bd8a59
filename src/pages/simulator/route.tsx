import type { Context } from "hono";
import type { ParameterReader } from "../../features/protocol/parameters.js";
import type { AppEnv } from "../../http/router.js";
import { SimulatorPage } from "./page.js";
import { readQuery, toScenario } from "./query.js";
import { simulate } from "./simulate.js";

/** `/simulator`: computes the payout on the server. */
export function showSimulator({ readParameters }: { readParameters: ParameterReader }) {
  return async (c: Context<AppEnv>) => {
    const query = readQuery(new URL(c.req.url).searchParams);
    const scenario = toScenario(query);
    if ("fault" in scenario) c.status(400);
    const result = "fault" in scenario ? scenario : simulate(scenario, await readParameters());
    return c.render(<SimulatorPage query={query} result={result} />, {
      title: "Payout simulator",
      section: "/simulator",
    });
  };
}
