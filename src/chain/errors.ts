/** Solidity errors in the API's words: every error that a relayed operation can end in has a code. */

import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import type { Hex } from "@working-contracts/protocol/types";
import { type ContractErrorName, decodeErrorResult } from "viem";
import type { ErrorCode } from "../errors.js";

interface ErrorMeaning {
  code: ErrorCode;
  message: string;
}

const conflict = (message: string): ErrorMeaning => ({ code: "conflict", message });
const forbidden = (message: string): ErrorMeaning => ({ code: "forbidden", message });

const broken = (message: string): ErrorMeaning => ({ code: "internal_error", message });

/** Errors of an escrow. The payment flow examines `PaymentFailed` again before this table counts. */
const ESCROW_ERRORS = {
  WrongStatus: conflict("The contract is not in the state that this call needs"),
  NotParty: forbidden(
    "The chain does not know you, or an operator acting for you, as the party that may do this",
  ),
  NotOperator: forbidden("Only the operator may do this"),
  NotPayerOrOperator: forbidden("Only the payer, or the operator for it, may do this"),
  NotCounterparty: forbidden("The contract names another address as its counterparty"),
  InitiatorCannotAccept: forbidden("The initiator cannot accept its own contract"),
  NothingToDecline: { code: "invalid_request", message: "Nobody is named, so there is nothing to decline" },
  DeadlinePassed: conflict("The deadline for this call has passed"),
  InvalidOutcomes: conflict("The criteria outcomes do not fit this contract"),
  PaymentFailed: conflict(
    "The payment could not be taken: the authorization is used, expired or not covered",
  ),
  AuthorizationSpent: conflict("This authorization was credited or returned already"),
  InvalidAuthorization: conflict("The authorization was cancelled, or is not one to this contract's escrow"),
  InsufficientSurplus: conflict("The escrow does not hold this payment"),
  SurplusNotReturnable: conflict("This payment cannot be returned yet"),
  PayoutHeld: conflict("The payout is held; repeat the call after the hold"),
  AlreadySettled: conflict("The contract is settled already"),
  NothingToClaim: conflict("There is nothing to claim"),
  PartyCannotVote: forbidden("The contract's client and worker cannot vote on it"),
  NotDrawn: forbidden("Only drawn Backup Agents may vote in the first half of the voting window"),
  AlreadyVoted: conflict("You have voted on this contract already"),
  PanelFull: conflict("The panel of Backup Agents is full"),
  VotingClosed: conflict("The voting window has closed"),
  VotingOpen: conflict("The voting window is still open"),
  NoDraw: conflict("There is no draw to make"),
  VoteNotSealed: conflict("There is no sealed vote of this agent"),
  CommitmentMismatch: conflict("The vote does not match its commitment"),
  OpeningClosed: conflict("The time for opening votes has passed"),
  TallyNotDue: conflict("The tally is not due yet"),
  ReentrancyGuardReentrantCall: conflict("The contract is in the middle of another call"),
  SafeERC20FailedOperation: conflict("The stablecoin refused the transfer"),
  AddressEmptyCode: broken("There is no escrow at this address"),
  FailedCall: broken("The escrow refused the act without a reason"),
} satisfies Record<ContractErrorName<typeof escrowAbi>, ErrorMeaning>;

const FACTORY_ERRORS = {
  InvalidTerms: conflict("The factory refuses these terms"),
  UnknownParameters: conflict(
    "The protocol parameters have changed since this attempt was first quoted; post it again with another idempotencyKey",
  ),
  InvalidParameters: broken("The factory refuses these parameters"),
  ZeroAddress: broken("An address is zero"),
  CloneArgumentsTooLong: broken("The terms do not fit the escrow"),
  Create2EmptyBytecode: broken("The escrow has no code"),
  FailedDeployment: broken("The escrow could not be deployed"),
  InsufficientBalance: broken("The factory lacks native currency"),
  OwnableInvalidOwner: broken("Not an owner"),
  OwnableUnauthorizedAccount: broken("Not the owner"),
} satisfies Record<ContractErrorName<typeof factoryAbi>, ErrorMeaning>;

const DELEGATION_ERRORS = {
  DelegationOutdated: forbidden("Your delegation was revoked on chain; issue a new API key to give it again"),
  InvalidDelegationSignature: forbidden("The chain refuses your delegation signature; issue a new API key"),
  NotAgentOrOperator: forbidden("Only the agent or the operator may revoke a delegation"),
  StringsInsufficientHexLength: broken("An address does not fit the challenge text"),
} satisfies Record<ContractErrorName<typeof delegationAbi>, ErrorMeaning>;

const REGISTRY_ERRORS = {
  NotEligible: forbidden(
    "You need the eligibility stake, staked before the dispute began, to vote on this contract",
  ),
  NotEscrow: forbidden("Only an escrow may lock stakes"),
  NotReleasable: conflict("The stake cannot be withdrawn yet"),
  NotStaked: conflict("There is no stake"),
  Unbonding: conflict("The stake is being withdrawn"),
  NotAgentOrOperator: forbidden("Only the agent or the operator may do this"),
  ReentrancyGuardReentrantCall: conflict("The registry is in the middle of another call"),
  SafeERC20FailedOperation: conflict("The token refused the transfer"),
  CheckpointUnorderedInsertion: broken("The chain's time went back"),
} satisfies Record<ContractErrorName<typeof registryAbi>, ErrorMeaning>;

const MEANINGS: Record<string, ErrorMeaning> = {
  ...FACTORY_ERRORS,
  ...DELEGATION_ERRORS,
  ...REGISTRY_ERRORS,
  ...ESCROW_ERRORS,
};

const ERROR_ABI = [...escrowAbi, ...factoryAbi, ...delegationAbi, ...registryAbi].filter(
  (item) => item.type === "error",
);

export interface Revert {
  name: string;
  args: readonly unknown[];
}

/** The typed error behind revert data; null for empty, foreign or truncated data. */
export function decodeRevert(data: Hex): Revert | null {
  try {
    const { errorName, args } = decodeErrorResult({ abi: ERROR_ABI, data });
    return { name: errorName, args: args ?? [] };
  } catch {
    return null;
  }
}

/** The API's answer to a Solidity error name; null for a name that is none of ours. */
export function meaningOf(errorName: string): ErrorMeaning | null {
  return Object.hasOwn(MEANINGS, errorName) ? (MEANINGS[errorName] ?? null) : null;
}
