/** The data that a feature hands to the payment flow: the request, its price, and the operation that a payment pays for. */

import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import type { Deps } from "../deps.js";
import type { AppError } from "../errors.js";
import {
  type AuthorizationArguments,
  acceptOperation,
  createOperation,
  disputeOperation,
  type NewOperation,
  stakeOperation,
  voteOperation,
} from "../relayer/operations.js";
import type { OperationRow } from "../relayer/outbox.js";
import { type CallIdentity, requestHash, type Success } from "./operation-outcome.js";
import type { HeaderReader, PaymentAsset, PaymentAuthorization } from "./x402.js";

export interface PaidCall<Action extends PaidAction = PaidAction> extends CallIdentity {
  /** Of the resource that is paid for. */
  path: string;
  headers: HeaderReader;
  /** The token to pay in; the deployment's stablecoin by default. */
  asset?: PaymentAsset;
  /** Everything that can refuse the call before a payment matters; throws 400, 403, 404 or 409. */
  check(): Promise<Action>;
  /**
   * Stores what the database must hold before the caller gets a quote, or the relayer the operation. Throws to refuse
   * that step. A credited payment is a direct transfer.
   */
  store?(action: Action, before: "quote" | "operation" | "credit"): Promise<void>;
  /** Reads the response after the action was applied on chain. */
  respond(mined: Pick<OperationRow, "escrow">): Promise<Success>;
}

export type PaidAction = Price & PaidOperation;

interface Price {
  /** The escrow; for a stake the registry. */
  payTo: Address;
  amount: bigint;
  /** Names in the quote what is paid for. */
  description: string;
  /** Last second in which the action can succeed on chain, if a deadline limits it. */
  lastSecond?: number;
  /** Refuses a second payment after another one has paid for the same action. */
  alreadyDone: AppError;
}

/** The operation's kind, with the arguments that only this kind has. */
type PaidOperation =
  | { kind: "create"; terms: EscrowTerms }
  | { kind: "accept" | "dispute" }
  | { kind: "vote"; commitment: Hex }
  | { kind: "stake"; onceKey: string };

/** A payment that can be taken now. */
export interface AcceptedPayment {
  ok: true;
  authorization: AuthorizationArguments;
  /** The money is already at the escrow, so the authorization's expiry no longer matters. */
  isDirectTransfer: boolean;
}

/** The outbox entry that takes the payment and performs the action together. */
export function toOperation(
  { deployment }: Deps,
  { call, action, accepted }: { call: PaidCall; action: PaidAction; accepted: AcceptedPayment },
): NewOperation {
  const { caller } = call;
  const { authorization, isDirectTransfer: directTransfer } = accepted;
  const facts = { deployment, authorization, requestHash: requestHash(call), ...expiryOf(action, accepted) };
  const onEscrow = { ...facts, escrow: action.payTo, caller };
  switch (action.kind) {
    case "create":
      return createOperation({ ...onEscrow, terms: action.terms });
    case "accept":
      return acceptOperation({ ...onEscrow, directTransfer });
    case "dispute":
      return disputeOperation({ ...onEscrow, directTransfer });
    case "vote":
      return voteOperation({ ...onEscrow, directTransfer, commitment: action.commitment });
    case "stake":
      return stakeOperation({ ...facts, agent: caller, amount: action.amount, onceKey: action.onceKey });
  }
}

/** The chain refuses the operation after the action's deadline, and after the authorization has expired. */
function expiryOf(
  { lastSecond = Number.MAX_SAFE_INTEGER }: PaidAction,
  { authorization: { validBefore }, isDirectTransfer }: AcceptedPayment,
): { notAfter?: number } {
  const isUnlimited = isDirectTransfer || validBefore > BigInt(Number.MAX_SAFE_INTEGER);
  const notAfter = isUnlimited ? lastSecond : Math.min(lastSecond, Number(validBefore) - 1);
  return notAfter === Number.MAX_SAFE_INTEGER ? {} : { notAfter };
}

export function assetOf({ deployment }: Deps, { asset }: PaidCall): PaymentAsset {
  return asset ?? deployment.asset;
}

/** Identifies a payment in the outbox. */
export function authorizationKey(
  deps: Deps,
  call: PaidCall,
  { from, nonce }: PaymentAuthorization,
): { asset: Address; payer: Address; nonce: Hex } {
  return { asset: assetOf(deps, call).address, payer: from, nonce };
}
