/** What the payment flow has to know about a call: who asks, what it costs, what it does. */

import type { Address, Hex } from "@working-contracts/protocol/types";
import type { Deps } from "../deps.js";
import type { AppError } from "../errors.js";
import type { AuthorizationArguments, NewOperation, OperationKind } from "../relayer/operations.js";
import type { OperationRow } from "../relayer/outbox.js";
import type { CallIdentity, Success } from "./answer.js";
import type { PaymentAuthorization } from "./decode.js";
import type { HeaderReader, PaymentAsset } from "./quote.js";

export interface PaidRequest extends CallIdentity {
  headers: HeaderReader;
  /** What is paid in; the deployment's stablecoin where absent. */
  asset?: PaymentAsset;
  /** Everything that can refuse the call before money is talked about; throws 404, 403, 409... */
  prepare(): Promise<PaidAct>;
  /** The answer to what was mined for this call; reads what is there now. */
  respond(mined: Pick<OperationRow, "escrow">): Promise<Success>;
}

export interface PaidAct {
  kind: OperationKind;
  /** Where the money goes: the escrow, or the registry for a stake. */
  escrow: Address;
  amount: bigint;
  resourceUrl: string;
  /** What is paid for, as the quote names it. */
  description: string;
  /** Runs before every 402; may refuse with 429 or 409. */
  beforeQuote?(): Promise<void>;
  /** Runs before the operation is stored: what must be in the database before anything is sent. */
  beforeSending?(): Promise<void>;
  operation(facts: {
    authorization: AuthorizationArguments;
    /** Whether the money is at the escrow already, by a transfer that was seen. */
    stray: boolean;
    requestHash: string;
    notAfter?: number;
  }): NewOperation;
  /**
   * An escrow that is not open credits any money at its address; a live one only what was seen to come from the payer.
   * The registry can get none but by its own call.
   */
  strayMoney: "credited-by-balance" | "credited-by-transfer" | "impossible";
  /** Last second in which the call can succeed on chain, where a deadline limits it. */
  lastSecond?: number;
  /** The refusal of a second payment for an act that another payment has already done. */
  alreadyDone(): AppError;
}

export function assetOf({ deployment }: Deps, { asset }: PaidRequest): PaymentAsset {
  return asset ?? deployment.asset;
}

/** What the outbox knows a payment by. */
export function authorizationKey(
  deps: Deps,
  request: PaidRequest,
  { from, nonce }: PaymentAuthorization,
): { asset: Address; payer: Address; nonce: Hex } {
  return { asset: assetOf(deps, request).address, payer: from, nonce };
}
