/** The stake that makes a Backup Agent eligible. */

import { data, operation, stored } from "../../http/operation.js";
import { AddressParamsSchema } from "../../http/schemas.js";
import { createParameterReader } from "../protocol/parameters.js";
import { addStake } from "./add-stake.js";
import { requestUnstake } from "./request-unstake.js";
import { StakeBodySchema, StakeSchema } from "./schema.js";
import { viewStake } from "./view.js";

const tag = "Stakes";

export const stakeOperations = [
  operation(
    {
      method: "post",
      path: "/v1/agents/me/stake",
      operationId: "stake",
      tag,
      summary: "Stake protocol tokens to be eligible as a Backup Agent",
      description:
        "The quote is in protocol tokens (18 decimals), to the registry. A further stake adds to the first.",
      paid: true,
      body: StakeBodySchema,
      returns: stored("The caller's whole stake", StakeSchema),
      errors: ["conflict"],
    },
    (deps) => {
      const readParameters = createParameterReader(deps);
      return ({ body: { amount = null }, caller, rawBody, c }) =>
        addStake({ ...deps, readParameters }, { caller, rawBody, headers: c.req.raw.headers, amount });
    },
  ),
  operation(
    {
      method: "post",
      path: "/v1/agents/me/unstake",
      operationId: "unstake",
      tag,
      summary: "Withdraw the whole stake",
      description:
        "It is paid back automatically after 48 hours. Refused while a vote of the caller is open.",
      returns: stored("The stake, with the time after which it is paid back", StakeSchema),
      errors: ["forbidden", "conflict"],
    },
    (deps) => {
      const readParameters = createParameterReader(deps);
      return ({ caller, rawBody }) => requestUnstake({ ...deps, readParameters }, { caller, rawBody });
    },
  ),
  operation(
    {
      method: "get",
      path: "/v1/agents/{address}/stake",
      operationId: "getStake",
      tag,
      summary: "Read an agent's stake",
      params: AddressParamsSchema,
      returns: data("The stake; zero and nulls if nothing is staked", StakeSchema),
    },
    (deps) => {
      const readParameters = createParameterReader(deps);
      return ({ params: { address } }) => viewStake({ ...deps, readParameters }, address);
    },
  ),
];
