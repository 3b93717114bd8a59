import type { Context } from "hono";
import type { Deps } from "../../deps.js";
import type { ParameterReader } from "../../features/protocol/parameters.js";
import { presentLimits, presentParameters } from "../../features/protocol/routes.js";
import type { AppEnv } from "../../http/router.js";
import { ParametersPage } from "./page.js";

/** `/parameters`: the data of `GET /v1/protocol` and `GET /v1/limits`. */
export function showParameters({
  config,
  readParameters,
}: Pick<Deps, "config"> & { readParameters: ParameterReader }) {
  return async (c: Context<AppEnv>) => {
    const parameters = await readParameters();
    return c.render(
      <ParametersPage
        parameters={presentParameters(parameters)}
        limits={presentLimits(config, parameters)}
      />,
      { title: "Protocol parameters", section: "/parameters", dataPath: "/v1/protocol" },
    );
  };
}
