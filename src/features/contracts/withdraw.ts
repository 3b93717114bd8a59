import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import type { Answer } from "../../payments/answer.js";
import { withdrawOperation } from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireBefore, requireStatus, requireWorker } from "./parties.js";
import { performAct } from "./perform-act.js";
import { viewContract } from "./view.js";

/** POST /v1/contracts/{id}/withdraw. Refuses with 403 (not the matched worker) and 409 (not in `matched`, or too late). */
export async function withdrawContract(
  deps: Deps,
  { id, caller, rawBody }: { id: Address; caller: Address; rawBody: Uint8Array },
): Promise<Answer> {
  return performAct(deps, {
    act: `withdraw ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      const row = await loadContractForAct(deps.db, id);
      requireWorker(row, caller);
      requireStatus(row, "matched", deps.clock.now());
      requireBefore("withdrawalDeadline", row.chain.withdrawalDeadline, deps.clock.now());
      return () =>
        withdrawOperation({
          escrow: id,
          caller,
          requestHash,
          notAfter: Number(row.chain.withdrawalDeadline) - 1,
        });
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}
