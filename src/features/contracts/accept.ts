/** POST /v1/contracts/{id}/accept with `true`: the stake (or a listing's price) matches the contract. */

import { workerStake } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader } from "../../payments/quote.js";
import { acceptOperation } from "../../relayer/operations.js";
import { requireAcceptor } from "./lifecycle.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireStatus } from "./parties.js";
import { parametersOf, viewContract } from "./view.js";

export interface AcceptCall {
  id: Address;
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
}

/** Quotes, or matches the caller. Refuses with 403 (not the one named, own contract) and 409 (not in `created`). */
export async function acceptContract(deps: Deps, call: AcceptCall): Promise<Answer> {
  const { id, caller } = call;
  return performPayment(deps, {
    act: `accept ${id}`,
    caller,
    rawBody: call.rawBody,
    headers: call.headers,
    prepare: () => prepareAccept(deps, call),
    respond: async () => ({ data: await viewContract(deps, id) }),
  });
}

async function prepareAccept(deps: Deps, { id, caller }: AcceptCall): Promise<PaidAct> {
  const row = await loadContractForAct(deps.db, id);
  requireAcceptor(row, caller);
  requireStatus(row, "created", deps.clock.now());
  const { workerInitiated, price, matchDeadline } = row.chain;

  return {
    kind: "accept",
    escrow: id,
    amount: workerInitiated ? price : workerStake(price, parametersOf(row)),
    resourceUrl: `${deps.config.baseUrl}/v1/contracts/${id}/accept`,
    description: `${workerInitiated ? "Price of" : "Worker Stake for"} the contract "${row.terms.title}"`,
    strayMoney: "credited-by-transfer",
    lastSecond: Number(matchDeadline) - 1,
    operation: ({ authorization, stray, requestHash, notAfter }) =>
      acceptOperation({
        deployment: deps.deployment,
        escrow: id,
        caller,
        authorization,
        stray,
        requestHash,
        notAfter,
      }),
    alreadyDone: () =>
      new AppError("conflict", { message: "You have accepted this contract already, with another payment." }),
  };
}
