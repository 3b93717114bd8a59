/**
 * The calls that the relayer can carry, as outbox entries. Pure: services say what is to be done, calldata, gas and
 * the once-key follow here.
 */

import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { encodeFunctionData } from "viem";
import { GAS_LIMITS, type OperationKind, signatureGas } from "./gas-limits.js";

export type { OperationKind } from "./gas-limits.js";

/** An act to be stored in the outbox. Addresses are lower case. */
export interface NewOperation {
  kind: OperationKind;
  /** Escrow acted on; null for acts on no escrow. */
  escrow: Address | null;
  /** Agent on whose behalf it is done; null for the keeper's. */
  caller: Address | null;
  target: Address;
  data: Hex;
  gasLimit: number;
  payment?: { asset: Address; payer: Address; nonce: Hex } | undefined;
  requestHash?: string | undefined;
  onceKey?: string | undefined;
  /** Seconds since 1970 on the chain's clock after which it cannot succeed. */
  notAfter?: number | undefined;
}

/** The part of a payer's EIP-3009 authorization that an escrow cannot derive by itself. */
export interface AuthorizationArguments {
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
  signature: Hex;
}

/** What every builder takes beside the act's own arguments. */
interface RequestFacts {
  requestHash?: string | undefined;
  /** Overrides the key derived from the act, where the act may rightly happen again. */
  onceKey?: string | undefined;
  notAfter?: number | undefined;
}

interface PaidAct extends RequestFacts {
  deployment: Deployment;
  escrow: Address;
  caller: Address;
  authorization: AuthorizationArguments;
}

interface SurplusAct extends PaidAct {
  /** The authorization's transfer to the escrow was seen: where the token takes it no more, that money pays. */
  directTransfer?: boolean;
}

interface Act extends RequestFacts {
  escrow: Address;
  caller: Address;
}

interface KeeperAct extends RequestFacts {
  escrow: Address;
}

/** Registers the agent's sign-in signature as its delegation to the Relay. */
export function delegateOperation(
  act: RequestFacts & {
    deployment: Deployment;
    agent: Address;
    nonce: Hex;
    issuedAt: number;
    expiresAt: number;
    signature: Hex;
  },
): NewOperation {
  const { deployment, agent, nonce, issuedAt, expiresAt, signature } = act;
  return build("delegate", act, {
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

/** Ends the agent's delegation to the Relay. `challengeId` names the proof that asked for it: once for each. */
export function revokeDelegationOperation(
  act: RequestFacts & { deployment: Deployment; agent: Address; challengeId: string },
): NewOperation {
  return build("revoke-delegation", act, {
    escrow: null,
    caller: act.agent,
    target: act.deployment.delegation,
    data: encodeFunctionData({
      abi: delegationAbi,
      functionName: "revoke",
      args: [act.agent, act.deployment.relay],
    }),
    onceKey: `revoke-delegation:${act.agent}:${act.challengeId}`,
  });
}

/** Deploys the escrow of `terms` and pays the initiator's deposit. */
export function createOperation(act: PaidAct & { terms: EscrowTerms }): NewOperation {
  return build("create", act, {
    escrow: act.escrow,
    caller: act.caller,
    target: act.deployment.factory,
    data: encodeFunctionData({
      abi: factoryAbi,
      functionName: "create",
      args: [packTerms(act.terms), authorizationOf(act)],
    }),
    payment: paymentOf(act),
    onceKey: `create:${act.escrow}`,
  });
}

/** Takes the contract as its counterparty, with the stake (or the listing's price) paid. */
export function acceptOperation(act: SurplusAct): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "accept",
    args: [act.caller, authorizationOf(act)],
  });
  return build("accept", act, {
    ...onEscrow(act, withSurplus(act, data)),
    payment: paymentOf(act),
    onceKey: `accept:${act.escrow}:${act.caller}`,
  });
}

export function declineOperation(act: Act): NewOperation {
  return build("decline", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "decline" })),
    onceKey: `decline:${act.escrow}`,
  });
}

export function cancelOperation(act: Act): NewOperation {
  return build("cancel", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "cancel" })),
    onceKey: `cancel:${act.escrow}`,
  });
}

/** `outcomes` are the packed computed criteria; 0 for a contract whose criteria are not computed. */
export function deliverOperation(
  act: Act & { deliveryHash: Hex; checkpointsRoot: Hex; outcomes: number },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "deliver",
    args: [act.deliveryHash, act.checkpointsRoot, act.outcomes],
  });
  return build("deliver", act, { ...onEscrow(act, data), onceKey: `deliver:${act.escrow}` });
}

export function withdrawOperation(act: Act): NewOperation {
  return build("withdraw", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "withdraw" })),
    onceKey: `withdraw:${act.escrow}`,
  });
}

export function approveOperation(act: Act): NewOperation {
  return build("approve", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "approve" })),
    onceKey: `approve:${act.escrow}`,
  });
}

/** Opens a dispute with the Client's bond paid. */
export function disputeOperation(act: SurplusAct): NewOperation {
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "dispute", args: [authorizationOf(act)] });
  return build("dispute", act, {
    ...onEscrow(act, withSurplus(act, data)),
    payment: paymentOf(act),
    onceKey: `dispute:${act.escrow}`,
  });
}

/** Posts the caller's sealed vote with its bond paid. */
export function voteOperation(act: SurplusAct & { commitment: Hex }): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "vote",
    args: [act.caller, act.commitment, authorizationOf(act)],
  });
  return build("vote", act, {
    ...onEscrow(act, withSurplus(act, data)),
    payment: paymentOf(act),
    onceKey: `vote:${act.escrow}:${act.caller}`,
  });
}

/** Draws the jury, or names another block as its seed's where that one is out of reach: give each try a `onceKey`. */
export function drawOperation(act: KeeperAct & { onceKey: string }): NewOperation {
  return build("draw", act, onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "draw" })));
}

export function openVoteOperation(
  act: KeeperAct & { backupAgent: Address; votes: number; salt: Hex },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "openVote",
    args: [act.backupAgent, act.votes, act.salt],
  });
  return build("open-vote", act, {
    ...onEscrow(act, data),
    onceKey: `open-vote:${act.escrow}:${act.backupAgent}`,
  });
}

export function tallyOperation(act: KeeperAct): NewOperation {
  return build("tally", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "tally" })),
    onceKey: `tally:${act.escrow}`,
  });
}

export function settleOperation(act: KeeperAct): NewOperation {
  return build("settle", act, {
    ...onEscrow(act, encodeFunctionData({ abi: escrowAbi, functionName: "settle" })),
    onceKey: `settle:${act.escrow}`,
  });
}

/** Pays a voter. A deferred reward is a second claim: give it a `onceKey` of its own. */
export function claimOperation(act: KeeperAct & { backupAgent: Address }): NewOperation {
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "claim", args: [act.backupAgent] });
  return build("claim", act, { ...onEscrow(act, data), onceKey: `claim:${act.escrow}:${act.backupAgent}` });
}

/** Tries a payout again that the token refused. It can become due again: give each try a `onceKey` of its own. */
export function claimDeferredOperation(act: KeeperAct & { payee: Address; onceKey: string }): NewOperation {
  const data = encodeFunctionData({ abi: escrowAbi, functionName: "claimDeferred", args: [act.payee] });
  return build("claim-deferred", act, onEscrow(act, data));
}

/** Sends money back that an authorization brought to the escrow without a state change. */
export function returnSurplusOperation(
  act: KeeperAct & { payer: Address; amount: bigint; authorization: AuthorizationArguments },
): NewOperation {
  const data = encodeFunctionData({
    abi: escrowAbi,
    functionName: "returnSurplus",
    args: [act.payer, act.amount, authorizationOf(act)],
  });
  return build("return-surplus", act, {
    ...onEscrow(act, data),
    onceKey: `return-surplus:${act.escrow}:${act.payer}:${act.authorization.nonce}`,
  });
}

/** Stakes protocol tokens for eligibility as a Backup Agent; the authorization is one of the protocol token. */
export function stakeOperation(
  act: RequestFacts & {
    deployment: Deployment;
    agent: Address;
    amount: bigint;
    authorization: AuthorizationArguments;
  },
): NewOperation {
  const { deployment, agent, amount, authorization } = act;
  return build("stake", act, {
    escrow: null,
    caller: agent,
    target: deployment.registry,
    data: encodeFunctionData({
      abi: registryAbi,
      functionName: "stake",
      args: [agent, amount, authorizationOf(act)],
    }),
    payment: { asset: deployment.protocolToken, payer: agent, nonce: authorization.nonce },
  });
}

/** Starts unbonding. It may happen again after a new stake: pass a `onceKey` that names the request. */
export function requestUnstakeOperation(
  act: RequestFacts & { deployment: Deployment; agent: Address },
): NewOperation {
  return build("request-unstake", act, {
    escrow: null,
    caller: act.agent,
    target: act.deployment.registry,
    data: encodeFunctionData({ abi: registryAbi, functionName: "requestUnstake", args: [act.agent] }),
  });
}

/** Takes an unbonded stake out. It may happen again after a new stake: pass a `onceKey` that names the request. */
export function withdrawStakeOperation(
  act: RequestFacts & { deployment: Deployment; agent: Address },
): NewOperation {
  return build("withdraw-stake", act, {
    escrow: null,
    caller: act.agent,
    target: act.deployment.registry,
    data: encodeFunctionData({ abi: registryAbi, functionName: "withdrawStake", args: [act.agent] }),
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

function onEscrow(act: { escrow: Address; caller?: Address }, data: Hex) {
  return { escrow: act.escrow, caller: act.caller ?? null, target: act.escrow, data };
}

function withSurplus({ directTransfer }: SurplusAct, data: Hex): Hex {
  if (directTransfer !== true) return data;
  return encodeFunctionData({ abi: escrowAbi, functionName: "withSurplus", args: [data] });
}

function authorizationOf({ authorization }: { authorization: AuthorizationArguments }) {
  const { validAfter, validBefore, nonce, signature } = authorization;
  return { validAfter, validBefore, nonce, signature };
}

function paymentOf({ deployment, caller, authorization }: PaidAct) {
  return { asset: deployment.asset.address, payer: caller, nonce: authorization.nonce };
}
