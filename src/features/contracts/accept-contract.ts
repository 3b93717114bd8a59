/** POST /v1/contracts/{id}/accept with `true`: paying the stake (or a listing's price) matches the contract. */

import { workerStake } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { StoredResponse } from "../../payments/operation-outcome.js";
import type { PaidAction } from "../../payments/paid-action.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { requireAcceptor } from "./lifecycle.js";
import { loadContractForAction } from "./load-for-action.js";
import { requireStatus } from "./parties.js";
import { parametersOf, viewContract } from "./view.js";

export interface AcceptCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
}

/** Quotes, or matches the caller. Refuses with 403 (not the one named, own contract) and 409 (not in `created`). */
export async function acceptContract(deps: Deps, call: AcceptCall): Promise<StoredResponse> {
  const { id, caller } = call;
  return performPaidCall(deps, {
    action: `accept ${id}`,
    caller,
    rawBody: call.rawBody,
    headers: call.headers,
    check: () => checkAccept(deps, call),
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

async function checkAccept(deps: Deps, { id, caller }: AcceptCall): Promise<PaidAction> {
  const row = await loadContractForAction(deps.db, id);
  requireAcceptor(row, caller);
  requireStatus(row, "created", deps.clock.now());
  const { workerInitiated, price, matchDeadline } = row.chain;

  return {
    kind: "accept",
    payTo: id,
    amount: workerInitiated ? price : workerStake(price, parametersOf(row)),
    resourceUrl: `${deps.config.baseUrl}/v1/contracts/${id}/accept`,
    description: `${workerInitiated ? "Price of" : "Worker Stake for"} the contract "${row.terms.title}"`,
    lastSecond: Number(matchDeadline) - 1,
    alreadyDone: new AppError("conflict", {
      message: "You have already accepted this contract, with another payment.",
    }),
  };
}
