/** POST /v1/contracts/{id}/dispute: the Client's bond puts the delivery before the Backup Agents. */

import { disputeBond } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader } from "../../payments/quote.js";
import { disputeOperation } from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireClient, requireStatus } from "./parties.js";
import { parametersOf, viewContract } from "./view.js";

export interface DisputeCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
}

/** Quotes the bond, or opens the dispute. Refuses with 403 (not the client) and 409 (not in `under-review`). */
export async function disputeContract(deps: Deps, call: DisputeCall): Promise<Answer> {
  const { id, caller, rawBody, headers } = call;
  return performPayment(deps, {
    act: `dispute ${id}`,
    caller,
    rawBody,
    headers,
    prepare: () => prepareDispute(deps, call),
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

async function prepareDispute(deps: Deps, { id, caller }: DisputeCall): Promise<PaidAct> {
  const row = await loadContractForAct(deps.db, id);
  requireClient(row, caller);
  requireStatus(row, "under-review", deps.clock.now());
  const { price, reviewDeadline } = row.chain;

  return {
    kind: "dispute",
    escrow: id,
    amount: disputeBond(price, parametersOf(row)),
    resourceUrl: `${deps.config.baseUrl}/v1/contracts/${id}/dispute`,
    description: `Dispute Bond for the contract "${row.terms.title}"`,
    strayMoney: "credited-by-transfer",
    lastSecond: Number(reviewDeadline) - 1,
    operation: ({ authorization, stray, requestHash, notAfter }) =>
      disputeOperation({
        deployment: deps.deployment,
        escrow: id,
        caller,
        authorization,
        stray,
        requestHash,
        notAfter,
      }),
    alreadyDone: () =>
      new AppError("conflict", { message: "You have disputed this contract already, with another payment." }),
  };
}
