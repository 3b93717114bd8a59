import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import type { Answer } from "../../payments/answer.js";
import { approveOperation } from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireClient, requireStatus } from "./parties.js";
import { performAct } from "./perform-act.js";
import { loadContract, toContract } from "./view.js";

/** POST /v1/contracts/{id}/approve. Refuses with 403 (not the contract's client) and 409 (not in `under-review`, or too late). */
export async function approveContract(
  deps: Deps,
  { id, caller, rawBody }: { id: Address; caller: Address; rawBody: Uint8Array },
): Promise<Answer> {
  return performAct(deps, {
    act: `approve ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      const row = await loadContractForAct(deps.db, id);
      requireClient(row, caller);
      requireStatus(row, "under-review", deps.clock.now());
      return () =>
        approveOperation({ escrow: id, caller, requestHash, notAfter: Number(row.chain.reviewDeadline) - 1 });
    },
    // The keeper may have settled by now; what this call did is `resolved`.
    respond: async () => {
      const row = await loadContract(deps.db, id);
      return { data: toContract({ ...row, chain: { ...row.chain, settled: false } }, deps.clock.now()) };
    },
  });
}
