import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import type { Answer } from "../../payments/answer.js";
import { cancelOperation } from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireInitiator, requireStatus } from "./parties.js";
import { performAct } from "./perform-act.js";
import { viewContract } from "./view.js";

/** POST /v1/contracts/{id}/cancel. Refuses with 403 (not the initiator) and 409 (not in `created`, or too late). */
export async function cancelContract(
  deps: Deps,
  { id, caller, rawBody }: { id: Address; caller: Address; rawBody: Uint8Array },
): Promise<Answer> {
  return performAct(deps, {
    act: `cancel ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      const row = await loadContractForAct(deps.db, id);
      requireInitiator(row, caller);
      requireStatus(row, "created", deps.clock.now());
      return () =>
        cancelOperation({ escrow: id, caller, requestHash, notAfter: Number(row.chain.matchDeadline) - 1 });
    },
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}
