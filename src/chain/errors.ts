/** The meaning of a failed execution: whether the contract or the node failed, and the API error code of each Solidity error. */

import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import type { Hex } from "@working-contracts/protocol/types";
import { BaseError, type ContractErrorName, decodeErrorResult, isHex, RpcRequestError } from "viem";
import type { ErrorCode } from "../errors.js";

interface ErrorMeaning {
  code: ErrorCode;
  message: string;
}

const conflict = (message: string): ErrorMeaning => ({ code: "conflict", message });
const forbidden = (message: string): ErrorMeaning => ({ code: "forbidden", message });

const broken = (message: string): ErrorMeaning => ({ code: "internal_error", message });

/** By name of the Solidity error. The payment flow examines `PaymentFailed` itself before it uses this table. */
const MEANINGS: Record<ContractErrorName<OurAbi>, ErrorMeaning> = {
  WrongStatus: conflict("The contract's status does not allow this action"),
  NotParty: forbidden(
    "Your address has not authorized this action on chain. Retry the request; the 403 response contains what to sign",
  ),
  InvalidActionSignature: {
    code: "invalid_signature",
    message:
      "The chain did not accept your signature for this action. Retry the request without Action-Signature; the 403 response contains what to sign",
  },
  InvalidActionDeadline: conflict(
    "The signature of this action has expired, or is valid for more than a day",
  ),
  NotOperator: forbidden("Only the operator may do this"),
  NotPayerOrOperator: forbidden("Only the payer, or the operator on its behalf, may do this"),
  NotCounterparty: forbidden("The contract names another address as its counterparty"),
  InitiatorCannotAccept: forbidden("The initiator cannot accept its own contract"),
  NothingToDecline: {
    code: "invalid_request",
    message: "The contract names no counterparty, so there is nothing to decline",
  },
  DeadlinePassed: conflict("The deadline for this action has passed. Read the contract for its status"),
  InvalidOutcomes: conflict("The outcomes do not match this contract's criteria"),
  PaymentFailed: conflict(
    "The payment failed: the authorization is used, cancelled or expired, or the payer's balance is too low",
  ),
  AuthorizationSpent: conflict("This authorization has already been credited or refunded"),
  InvalidAuthorization: conflict("The authorization was cancelled, or does not pay this contract's escrow"),
  InsufficientUnbookedBalance: conflict("The escrow does not hold this payment"),
  DirectTransferNotRefundable: conflict("This payment cannot be refunded yet"),
  PayoutHeld: conflict("The payout is on hold. Retry after the hold has ended"),
  AlreadySettled: conflict("The contract is already settled"),
  NothingToClaim: conflict("There is nothing to claim"),
  PartyCannotVote: forbidden("The contract's client and worker cannot vote on it"),
  NotDrawn: forbidden("Only drawn Backup Agents may vote in the first half of the voting window"),
  AlreadyVoted: conflict("You have already voted on this contract"),
  PanelFull: conflict("The panel of Backup Agents is full"),
  VotingClosed: conflict("The voting window has closed. Read the contract for its status"),
  VotingOpen: conflict("The voting window is still open"),
  NoDraw: conflict("No draw is due"),
  VoteNotSealed: conflict("This agent has no sealed vote"),
  CommitmentMismatch: conflict("The vote does not match its commitment"),
  OpeningClosed: conflict("The period for opening votes has ended. Read the contract for its status"),
  TallyNotDue: conflict("The tally is not due yet"),
  ReentrancyGuardReentrantCall: conflict("The contract is in the middle of another call. Retry"),
  SafeERC20FailedOperation: conflict("The stablecoin refused the transfer"),
  AddressEmptyCode: broken("There is no escrow at this address"),
  FailedCall: broken("The escrow reverted without a reason"),
  // Of the factory.
  InvalidTerms: conflict("The factory rejected these terms"),
  UnknownParameters: conflict(
    "The protocol parameters have changed since this attempt was first quoted. Post it again with a new idempotencyKey",
  ),
  InvalidParameters: broken("The factory rejected these parameters"),
  ZeroAddress: broken("An address is zero"),
  Create2EmptyBytecode: broken("The escrow has no code"),
  FailedDeployment: broken("The escrow could not be deployed"),
  InsufficientBalance: broken("The factory lacks native currency"),
  OwnableInvalidOwner: broken("Not an owner"),
  OwnableUnauthorizedAccount: broken("Not the owner"),
  // Of the delegations.
  DelegationOutdated: forbidden("Your delegation was revoked on chain. Issue a new API key to renew it"),
  InvalidDelegationSignature: forbidden(
    "Your delegation signature was rejected on chain. Issue a new API key",
  ),
  StringsInsufficientHexLength: broken("An address could not be written into the challenge text"),
  // Of the registry.
  NotEligible: forbidden(
    "To vote on this contract, you must have staked the eligibility stake before the parties were matched",
  ),
  NotEscrow: forbidden("Only an escrow may lock stakes"),
  NotReleasable: conflict("The stake cannot be withdrawn yet"),
  NotStaked: conflict("You have no stake to withdraw"),
  Unbonding: conflict("The stake is being withdrawn"),
  NotAgentOrOperator: forbidden("Only the agent or the operator may do this"),
  CheckpointUnorderedInsertion: broken("The chain's clock moved backwards"),
};
type OurAbi = typeof escrowAbi | typeof factoryAbi | typeof delegationAbi | typeof registryAbi;

const ERROR_ABI = [...escrowAbi, ...factoryAbi, ...delegationAbi, ...registryAbi].filter(
  (item) => item.type === "error",
);

/** The name of our Solidity error in revert data; null if that is empty, truncated or an unknown error. */
export function errorNameOf(data: Hex): string | null {
  try {
    return decodeErrorResult({ abi: ERROR_ABI, data }).errorName;
  } catch {
    return null;
  }
}

/** The API error code and message for a Solidity error name; null if the error is not ours. */
export function meaningOf(errorName: string): ErrorMeaning | null {
  return Object.hasOwn(MEANINGS, errorName) ? MEANINGS[errorName as keyof typeof MEANINGS] : null;
}

/** JSON-RPC: the execution was reverted. */
const EXECUTION_REVERTED = 3;
/**
 * How geth, reth, Erigon, Nethermind, Besu and anvil report a revert under other codes, and other failed executions.
 */
const EXECUTION_FAILED =
  /revert|out ?of ?gas|gas required exceeds|invalid (opcode|jump)|bad (instruction|jump)|stack (under|over|limit)|write protection|return data out of bounds|gas uint64 overflow|max call depth|(evm|vm execution) error/i;
const OUT_OF_GAS = /out ?of ?gas|gas required exceeds/i;

interface FailedExecution {
  /** Revert data; `0x` if there is none. */
  data: Hex;
  outOfGas: boolean;
}

/**
 * Returns how the contract failed; null if the error is about the node, for example because it is unreachable or
 * rejects the request. viem's error classes cannot be used: its contract functions treat every internal error (-32603)
 * as a revert.
 */
export function failedExecution(error: unknown): FailedExecution | null {
  const cause =
    error instanceof BaseError ? error.walk((inner) => inner instanceof RpcRequestError) : undefined;
  if (!(cause instanceof RpcRequestError)) return null;
  const { code, data, details } = cause;
  if (code !== EXECUTION_REVERTED && !EXECUTION_FAILED.test(details)) return null;
  return { data: isHex(data) ? data : "0x", outOfGas: OUT_OF_GAS.test(details) };
}
