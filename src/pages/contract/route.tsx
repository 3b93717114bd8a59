import type { Context } from "hono";
import type { Deps } from "../../deps.js";
import type { AppEnv } from "../../http/router.js";
import { addressOf } from "../path-address.js";
import { loadContractPage } from "./load.js";
import { ContractPage } from "./page.js";

/** `/contracts/{id}`. Throws 404. */
export function showContract(deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment">) {
  return async (c: Context<AppEnv>) => {
    const id = addressOf(c, "id");
    const { votes, checkpoints } = c.req.query();
    const data = await loadContractPage(deps, id, { votes, checkpoints });
    return c.render(<ContractPage data={data} />, {
      title: data.contract.title,
      section: "/",
      dataPath: `/v1/contracts/${id}`,
      live: { contractId: id },
    });
  };
}
