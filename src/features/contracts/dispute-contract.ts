/** POST /v1/contracts/{id}/dispute: the Client's bond puts the delivery before the Backup Agents. */

import { disputeBond } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import type { PaidAction } from "../../payments/paid-action.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { loadContractForAction } from "./load-for-action.js";
import { requireClient, requireStatus } from "./parties.js";
import { parametersOf, viewContract } from "./view.js";

export interface DisputeCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
}

/** Quotes the bond, or opens the dispute. Refuses with 403 (not the client) and 409 (not in `under-review`). */
export async function disputeContract(deps: Deps, call: DisputeCall): Promise<StoredResponse> {
  const { id, caller, rawBody, headers } = call;
  return performPaidCall(deps, {
    action: `dispute ${id}`,
    caller,
    rawBody,
    headers,
    check: () => checkDispute(deps, call),
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

async function checkDispute(deps: Deps, { id, caller }: DisputeCall): Promise<PaidAction> {
  const row = await loadContractForAction(deps.db, id);
  requireClient(row, caller);
  requireStatus(row, "under-review", deps.clock.now());
  const { price, reviewDeadline } = row.chain;

  return {
    kind: "dispute",
    payTo: id,
    amount: disputeBond(price, parametersOf(row)),
    resourceUrl: `${deps.config.baseUrl}/v1/contracts/${id}/dispute`,
    description: `Dispute Bond for the contract "${row.terms.title}"`,
    lastSecond: Number(reviewDeadline) - 1,
    alreadyDone: new AppError("conflict", {
      message: "You have already disputed this contract, with another payment.",
    }),
  };
}
