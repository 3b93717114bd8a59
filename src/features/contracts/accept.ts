/** POST /v1/contracts/{id}/accept: the stake (or a listing's price) matches the contract; `false` declines it. */

import { workerStake } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import type { Answer } from "../../payments/answer.js";
import type { PaidAct } from "../../payments/paid-act.js";
import { performPayment } from "../../payments/perform-payment.js";
import type { HeaderReader } from "../../payments/quote.js";
import { acceptOperation, declineOperation } from "../../relayer/operations.js";
import { loadContractForAct } from "./load-for-act.js";
import { requireStatus } from "./parties.js";
import { performAct } from "./perform-act.js";
import { type ContractRow, parametersOf, viewContract } from "./view.js";

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

/** Declines for the one who is named. Refuses with 400 where nobody is, 403 for anybody else, 409 outside `created`. */
export async function declineContract(
  deps: Deps,
  { id, caller, rawBody }: Omit<AcceptCall, "headers">,
): Promise<Answer> {
  return performAct(deps, {
    act: `decline ${id}`,
    subject: { escrow: id },
    caller,
    rawBody,
    prepare: async (requestHash) => {
      const row = await loadContractForAct(deps.db, id);
      requireDeclinable(row);
      requireAcceptor(row, caller);
      requireStatus(row, "created", deps.clock.now());
      return () =>
        declineOperation({ escrow: id, caller, requestHash, notAfter: Number(row.chain.matchDeadline) - 1 });
    },
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

function requireAcceptor({ chain }: ContractRow, caller: Address): void {
  if (caller === chain.initiator) {
    throw new AppError("forbidden", { message: "You posted this contract; somebody else has to accept it." });
  }
  if (chain.namedCounterparty === null || chain.namedCounterparty === caller) return;
  const role = chain.workerInitiated ? "buyer it is reserved for" : "worker named in it";
  throw new AppError("forbidden", { message: `Only the ${role} may answer this contract.` });
}

function requireDeclinable({ chain }: ContractRow): void {
  if (chain.namedCounterparty !== null) return;
  const message = "accept: must be true: the contract is open to anybody, so there is nothing to decline";
  throw new AppError("invalid_request", { message, details: [{ path: "accept", message: "must be true" }] });
}
