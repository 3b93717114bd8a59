/**
 * Builds outbox entries for every call the relayer can send. Pure: services name the action; this module adds calldata,
 * gas limit and once-key.
 */

import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { encodeFunctionData } from "viem";
import { GAS_LIMITS, type OperationKind, signatureGas } from "./gas-limits.js";

export type { OperationKind } from "./gas-limits.js";

/** An action to store in the outbox. Addresses are lower case. */
export interface NewOperation {
  kind: OperationKind;
  /** Null for actions that do not touch an escrow. */
  escrow: Address | null;
  /** Agent it is done for; null for the keeper's own operations. */
  caller: Address | null;
  target: Address;
  data: Hex;
  gasLimit: number;
  payment?: { asset: Address; payer: Address; nonce: Hex } | undefined;
  requestHash?: string | undefined;
  onceKey?: string | undefined;
  /** Unix seconds on the chain's clock after which it cannot succeed. */
  notAfter?: number | undefined;
}

/** The fields of a payer's EIP-3009 authorization that an escrow cannot derive. */
export interface AuthorizationArguments {
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
  signature: Hex;
}

/** Fields every builder accepts in addition to the action's own arguments. */
interface RequestFacts {
  requestHash?: string | undefined;
  /** Overrides the derived key, for actions that can legitimately happen more than once. */
  onceKey?: string | undefined;
  notAfter?: number | undefined;
}

interface PaidAction extends RequestFacts {
  deployment: Deployment;
  escrow: Address;
  caller: Address;
  authorization: AuthorizationArguments;
}

interface CreditableAction extends PaidAction {
  /**
   * The authorization was executed as a direct transfer to the escrow. If the token rejects the authorization as used,
   * the escrow credits that transfer instead.
   */
  directTransfer?: boolean;
}

interface EscrowAction extends RequestFacts {
  escrow: Address;
  caller: Address;
}

interface KeeperAction extends RequestFacts {
  escrow: Address;
}

/** Registers the agent's sign-in signature on chain as its delegation to the Relay. */
export function delegateOperation(
  action: RequestFacts & {
    deployment: Deployment;
    agent: Address;
    nonce: Hex;
    issuedAt: number;
    expiresAt: number;
    signature: Hex;
  },
): NewOperation {
  const { deployment, agent, nonce, issuedAt, expiresAt, signature } = action;
  return build("delegate", action, {
    escrow: null,
    caller: agent,
    target: deployment.delegation,
    data: encodeFunctionData({
      abi: delegationAbi,
      functionName: "register",
      args: [agent, deployment.relay, nonce, issuedAt, expiresAt, signature],
    }),
    onceKey: `delegate:${agent}:${nonce}`,
  });
}

/** Revokes the agent's delegation to the Relay, at most once per proof of address (`challengeId`). */
export function revokeDelegationOperation(
  action: RequestFacts & { deployment: Deployment; agent: Address; challengeId: string },
): NewOperation {
  return build("revoke-delegation", action, {
    escrow: null,
    caller: action.agent,
    target: action.deployment.delegation,
    data: encodeFunctionData({
      abi: delegationAbi,
      functionName: "revoke",
      args: [action.agent, action.deployment.relay],
    }),
    onceKey: `revoke-delegation:${action.agent}:${action.challengeId}`,
  });
}

/** Deploys the escrow for `terms` and pays the initiator's deposit into it. */
export function createOperation(action: PaidAction & { terms: EscrowTerms }): NewOperation {
  return build("create", action, {
    escrow: action.escrow,
    caller: action.caller,
    target: action.deployment.factory,
    data: encodeFunctionData({
      abi: factoryAbi,
      functionName: "create",
      args: [packTerms(action.terms), authorizationOf(action)],
    }),
    payment: paymentOf(action),
    onceKey: `create:${action.escrow}`,
  });
}

/** Accepts the contract as its counterparty and pays the stake (or the listing's price). */
export function acceptOperation(action: CreditableAction): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "accept",
    args: [action.caller, authorizationOf(action)],
  });
  return build("accept", action, {
    ...onEscrow(action, withSurplus(action, data)),
    payment: paymentOf(action),
    onceKey: `accept:${action.escrow}:${action.caller}`,
  });
}

export function declineOperation(action: EscrowAction): NewOperation {
  return build("decline", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "decline" })),
    onceKey: `decline:${action.escrow}`,
  });
}

export function cancelOperation(action: EscrowAction): NewOperation {
  return build("cancel", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "cancel" })),
    onceKey: `cancel:${action.escrow}`,
  });
}

/** `outcomes` packs the results of computed criteria; 0 if the contract's criteria are not computed. */
export function deliverOperation(
  action: EscrowAction & { deliveryHash: Hex; checkpointsRoot: Hex; outcomes: number },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "deliver",
    args: [action.deliveryHash, action.checkpointsRoot, action.outcomes],
  });
  return build("deliver", action, { ...onEscrow(action, data), onceKey: `deliver:${action.escrow}` });
}

export function withdrawOperation(action: EscrowAction): NewOperation {
  return build("withdraw", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "withdraw" })),
    onceKey: `withdraw:${action.escrow}`,
  });
}

export function approveOperation(action: EscrowAction): NewOperation {
  return build("approve", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "approve" })),
    onceKey: `approve:${action.escrow}`,
  });
}

/** Opens a dispute and pays the Client's bond. */
export function disputeOperation(action: CreditableAction): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "dispute",
    args: [authorizationOf(action)],
  });
  return build("dispute", action, {
    ...onEscrow(action, withSurplus(action, data)),
    payment: paymentOf(action),
    onceKey: `dispute:${action.escrow}`,
  });
}

/** Posts the caller's sealed vote and pays its bond. */
export function voteOperation(action: CreditableAction & { commitment: Hex }): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "vote",
    args: [action.caller, action.commitment, authorizationOf(action)],
  });
  return build("vote", action, {
    ...onEscrow(action, withSurplus(action, data)),
    payment: paymentOf(action),
    onceKey: `vote:${action.escrow}:${action.caller}`,
  });
}

/** Draws the jury, or picks a new seed block if the old one is out of reach. Each try needs a different `onceKey`. */
export function drawOperation(action: KeeperAction & { onceKey: string }): NewOperation {
  return build(
    "draw",
    action,
    onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "draw" })),
  );
}

export function openVoteOperation(
  action: KeeperAction & { backupAgent: Address; votes: number; salt: Hex },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "openVote",
    args: [action.backupAgent, action.votes, action.salt],
  });
  return build("open-vote", action, {
    ...onEscrow(action, data),
    onceKey: `open-vote:${action.escrow}:${action.backupAgent}`,
  });
}

export function tallyOperation(action: KeeperAction): NewOperation {
  return build("tally", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "tally" })),
    onceKey: `tally:${action.escrow}`,
  });
}

export function settleOperation(action: KeeperAction): NewOperation {
  return build("settle", action, {
    ...onEscrow(action, encodeFunctionData({ abi: escrowAbi, functionName: "settle" })),
    onceKey: `settle:${action.escrow}`,
  });
}

/** Pays a voter. A deferred reward is a second claim and needs a different `onceKey`. */
export function claimOperation(action: KeeperAction & { backupAgent: Address }): NewOperation {
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "claim", args: [action.backupAgent] });
  return build("claim", action, {
    ...onEscrow(action, data),
    onceKey: `claim:${action.escrow}:${action.backupAgent}`,
  });
}

/** Retries a payout that the token refused. It can become due again, so each try needs a different `onceKey`. */
export function claimDeferredOperation(
  action: KeeperAction & { payee: Address; onceKey: string },
): NewOperation {
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "claimDeferred", args: [action.payee] });
  return build("claim-deferred", action, onEscrow(action, data));
}

/** Refunds a direct transfer: money that an authorization moved to the escrow without changing its state. */
export function returnSurplusOperation(
  action: KeeperAction & { payer: Address; amount: bigint; authorization: AuthorizationArguments },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "returnSurplus",
    args: [action.payer, action.amount, authorizationOf(action)],
  });
  return build("return-surplus", action, {
    ...onEscrow(action, data),
    onceKey: `return-surplus:${action.escrow}:${action.payer}:${action.authorization.nonce}`,
  });
}

/** Stakes protocol tokens to become eligible as a Backup Agent. `authorization` must be for the protocol token. */
export function stakeOperation(
  action: RequestFacts & {
    deployment: Deployment;
    agent: Address;
    amount: bigint;
    authorization: AuthorizationArguments;
  },
): NewOperation {
  const { deployment, agent, amount, authorization } = action;
  return build("stake", action, {
    escrow: null,
    caller: agent,
    target: deployment.registry,
    data: encodeFunctionData({
      abi: registryAbi,
      functionName: "stake",
      args: [agent, amount, authorizationOf(action)],
    }),
    payment: { asset: deployment.protocolToken, payer: agent, nonce: authorization.nonce },
  });
}

/** Starts unbonding. It can happen again after a new stake, so pass a `onceKey` that identifies the request. */
export function requestUnstakeOperation(
  action: RequestFacts & { deployment: Deployment; agent: Address },
): NewOperation {
  return build("request-unstake", action, {
    escrow: null,
    caller: action.agent,
    target: action.deployment.registry,
    data: encodeFunctionData({ abi: registryAbi, functionName: "requestUnstake", args: [action.agent] }),
  });
}

/**
 * Withdraws an unbonded stake. It can happen again after a new stake, so pass a `onceKey` that identifies the request.
 */
export function withdrawStakeOperation(
  action: RequestFacts & { deployment: Deployment; agent: Address },
): NewOperation {
  return build("withdraw-stake", action, {
    escrow: null,
    caller: action.agent,
    target: action.deployment.registry,
    data: encodeFunctionData({ abi: registryAbi, functionName: "withdrawStake", args: [action.agent] }),
  });
}

function build(
  kind: OperationKind,
  facts: RequestFacts & { signature?: Hex; authorization?: AuthorizationArguments },
  call: Pick<NewOperation, "escrow" | "caller" | "target" | "data" | "payment" | "onceKey">,
): NewOperation {
  return {
    ...call,
    kind,
    gasLimit: GAS_LIMITS[kind] + signatureGas(facts.signature ?? facts.authorization?.signature ?? "0x"),
    requestHash: facts.requestHash,
    onceKey: facts.onceKey ?? call.onceKey,
    notAfter: facts.notAfter,
  };
}

function onEscrow(action: { escrow: Address; caller?: Address }, data: Hex) {
  return { escrow: action.escrow, caller: action.caller ?? null, target: action.escrow, data };
}

function withSurplus({ directTransfer }: CreditableAction, data: Hex): Hex {
  if (directTransfer !== true) return data;
  return encodeFunctionData({ abi: escrowAbi, functionName: "withSurplus", args: [data] });
}

function authorizationOf({ authorization }: { authorization: AuthorizationArguments }) {
  const { validAfter, validBefore, nonce, signature } = authorization;
  return { validAfter, validBefore, nonce, signature };
}

function paymentOf({ deployment, caller, authorization }: PaidAction) {
  return { asset: deployment.asset.address, payer: caller, nonce: authorization.nonce };
}
