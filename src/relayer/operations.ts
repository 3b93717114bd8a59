/** Builds outbox entries for every call the relayer can send: calldata, gas limit and once-key. Pure. */
import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Delegation } from "@working-contracts/protocol/signatures";
import { packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import {
  type ContractFunctionArgs,
  type ContractFunctionName,
  type EncodeFunctionDataParameters,
  encodeFunctionData,
  prepareEncodeFunctionData,
} from "viem";
import type { GasPolicy } from "./gas-accounts.js";

/**
 * Gas limits the Relay enforces per kind of operation: about twice the costliest ordinary call (test/contracts/snapshots),
 * for proxied stablecoins, cold storage and first payments. Not more: a hostile contract wallet can burn all of it.
 */
export const GAS_LIMITS = {
  delegate: 200_000,
  "revoke-delegation": 80_000,
  create: 350_000,
  accept: 200_000,
  decline: 80_000,
  cancel: 80_000,
  deliver: 80_000,
  withdraw: 80_000,
  approve: 80_000,
  dispute: 220_000,
  vote: 280_000,
  // The maximum of 31 seats, each with four slots of the pool, whose histories get longer with time.
  draw: 4_000_000,
  "open-vote": 150_000,
  tally: 150_000,
  settle: 250_000,
  claim: 250_000,
  "claim-deferred": 150_000,
  "refund-direct-transfer": 200_000,
  stake: 280_000,
  "request-unstake": 155_000,
  "withdraw-stake": 120_000,
};
export type OperationKind = keyof typeof GAS_LIMITS;

/** Pays money out of an escrow to the one agent it belongs to. */
export const PAYS_OUT: ReadonlySet<string> = new Set<OperationKind>([
  "refund-direct-transfer",
  "claim-deferred",
]);

/** Hex length of an externally owned account's signature. A contract wallet's is longer and costs more to verify. */
const ORDINARY_SIGNATURE_LENGTH = 2 + 2 * 65;
const CONTRACT_WALLET_GAS = 400_000;

/** An action to store in the outbox. Addresses are lower case. */
export interface NewOperation {
  kind: OperationKind;
  /** Null for actions that do not touch an escrow. */
  escrow: Address | null;
  /** Whether it carries its caller's signature, which a contract wallet judges by its own code. */
  signed: boolean;
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
  /** It is not stored if its caller exceeds these limits. */
  gasPolicy?: GasPolicy | undefined;
}

/** The fields of a payer's EIP-3009 authorization that an escrow cannot derive. */
export interface AuthorizationArguments {
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
  signature: Hex;
}

/** Every builder accepts these. `onceKey` overrides the derived key, for actions that can legitimately happen again. */
type RequestFacts = Pick<NewOperation, "requestHash" | "onceKey" | "notAfter">;
type KeeperAction = RequestFacts & { escrow: Address };
type EscrowAction = KeeperAction & { caller: Address };
type AccountAction = RequestFacts & { deployment: Deployment; agent: Address };
type AuthorizedAction = EscrowAction & { deployment: Deployment; authorization: AuthorizationArguments };
/** `directTransfer`: the escrow credits the authorization if the token rejects it as used. */
type CreditableAction = AuthorizedAction & { directTransfer?: boolean };

/** Registers the agent's sign-in signature on chain as its delegation to the Relay. */
export function delegateOperation(
  action: AccountAction & Omit<Delegation, "operator"> & { signature: Hex },
): NewOperation {
  const { deployment, nonce, signature } = action;
  const args = [{ ...action, operator: deployment.relay }, signature] as const;
  const data = encodeFunctionData({ abi: delegationAbi, functionName: "register", args });
  return onAccount("delegate", action, { target: deployment.delegation, data }, nonce);
}

/** Revokes the agent's delegation to the Relay, at most once per proof of address (`challengeId`). */
export function revokeDelegationOperation(action: AccountAction & { challengeId: string }): NewOperation {
  const { deployment, agent, challengeId } = action;
  const args = [agent, deployment.relay] as const;
  const data = encodeFunctionData({ abi: delegationAbi, functionName: "revoke", args });
  return onAccount("revoke-delegation", action, { target: deployment.delegation, data }, challengeId);
}

/** Prepared: the selector is hashed once. */
const create = prepareEncodeFunctionData({ abi: factoryAbi, functionName: "create" });

export const creationKey = (escrow: Address): string => `create:${escrow}`;

/** Deploys the escrow for `terms` and pays the initiator's deposit into it. */
export function createOperation(action: AuthorizedAction & { terms: EscrowTerms }): NewOperation {
  const { deployment, escrow, caller, terms, authorization } = action;
  return build("create", action, {
    escrow,
    caller,
    target: deployment.factory,
    data: encodeFunctionData({ ...create, args: [packTerms(terms), authorization] }),
    payment: paymentOf(action),
    onceKey: creationKey(escrow),
  });
}

/** Accepts the contract as its counterparty and pays the stake (or the listing's price). */
export function acceptOperation(action: CreditableAction): NewOperation {
  const { caller, authorization } = action;
  return paidOnEscrow("accept", action, escrowCall("accept", [caller, authorization]), caller);
}

/** Opens a dispute and pays the Client's bond. */
export function disputeOperation(action: CreditableAction): NewOperation {
  return paidOnEscrow("dispute", action, escrowCall("dispute", [action.authorization]));
}

/** Posts the caller's sealed vote and pays its bond. */
export function voteOperation(action: CreditableAction & { commitment: Hex }): NewOperation {
  const { caller, commitment, authorization } = action;
  return paidOnEscrow("vote", action, escrowCall("vote", [caller, commitment, authorization]), caller);
}

export const declineOperation = (action: EscrowAction) => bareCall("decline", action);
export const cancelOperation = (action: EscrowAction) => bareCall("cancel", action);
export const withdrawOperation = (action: EscrowAction) => bareCall("withdraw", action);
export const approveOperation = (action: EscrowAction) => bareCall("approve", action);
export const tallyOperation = (action: KeeperAction) => bareCall("tally", action);
export const settleOperation = (action: KeeperAction) => bareCall("settle", action);
/**
 * Draws the panel, or picks a new seed block if the old one is out of reach. Each try needs a different `onceKey`. Its gas
 * limit grows with the seats: callers share the gas of a batch by these limits.
 */
export const drawOperation = ({ seats, ...action }: KeeperAction & { onceKey: string; seats: number }) => ({
  ...bareCall("draw", action),
  gasLimit: Math.ceil((GAS_LIMITS.draw * (seats + 1)) / 32),
});

/** `outcomes` packs the results of computed criteria; 0 if the contract's criteria are not computed. */
export function deliverOperation(
  action: EscrowAction & { deliveryHash: Hex; checkpointsRoot: Hex; outcomes: number },
): NewOperation {
  const { deliveryHash, checkpointsRoot, outcomes } = action;
  const data = escrowCall("deliver", [deliveryHash, checkpointsRoot, outcomes]);
  return onEscrow("deliver", action, data);
}

/** With `caller`, a voter opens its own ballot; otherwise the keeper opens one entrusted to the service. */
export function openVoteOperation(
  action: KeeperAction & { caller?: Address; backupAgent: Address; votes: number; salt: Hex },
): NewOperation {
  const { backupAgent, votes, salt } = action;
  return onEscrow("open-vote", action, escrowCall("openVote", [backupAgent, votes, salt]), backupAgent);
}

/** Pays a voter. A deferred reward is a second claim and needs a different `onceKey`. */
export const claimOperation = (action: KeeperAction & { backupAgent: Address }) =>
  onEscrow("claim", action, escrowCall("claim", [action.backupAgent]), action.backupAgent);

/** Retries a payout that the token refused. It can become due again, so each try needs a different `onceKey`. */
export const claimDeferredOperation = (action: KeeperAction & { payee: Address; onceKey: string }) =>
  onEscrow("claim-deferred", action, escrowCall("claimDeferred", [action.payee]));

/** Refunds a direct transfer: money that an authorization moved to the escrow without changing its state. */
export function refundDirectTransferOperation(
  action: EscrowAction & { amount: bigint; authorization: AuthorizationArguments },
): NewOperation {
  const { caller: payer, amount, authorization } = action;
  const data = escrowCall("refundDirectTransfer", [payer, amount, authorization]);
  return onEscrow("refund-direct-transfer", action, data, `${payer}:${authorization.nonce}`);
}

/** Stakes protocol tokens to become eligible as a Backup Agent. `authorization` must be for the protocol token. */
export function stakeOperation(
  action: AccountAction & { amount: bigint; authorization: AuthorizationArguments },
): NewOperation {
  const { deployment, agent, amount, authorization } = action;
  const args = [agent, amount, authorization] as const;
  const data = encodeFunctionData({ abi: registryAbi, functionName: "stake", args });
  const payment = { asset: deployment.protocolToken, payer: agent, nonce: authorization.nonce };
  return onAccount("stake", action, { target: deployment.registry, data, payment });
}

/** Starts unbonding. It can happen again after a new stake, so pass a `onceKey` that identifies the request. */
export const requestUnstakeOperation = (action: AccountAction) =>
  onAccount("request-unstake", action, registryCall("requestUnstake", action));

/** Withdraws an unbonded stake. It too can happen again, so pass a `onceKey` that identifies the request. */
export const withdrawStakeOperation = (action: AccountAction) =>
  onAccount("withdraw-stake", action, registryCall("withdrawStake", action));

const registryCall = (
  functionName: "requestUnstake" | "withdrawStake",
  { deployment, agent }: AccountAction,
) => ({
  target: deployment.registry,
  data: encodeFunctionData({ abi: registryAbi, functionName, args: [agent] }),
});

/** A call without arguments, once per escrow. */
const bareCall = (
  kind: "decline" | "cancel" | "withdraw" | "approve" | "tally" | "settle" | "draw",
  action: KeeperAction & { caller?: Address },
): NewOperation => onEscrow(kind, action, escrowCall(kind, []));

function escrowCall<Name extends ContractFunctionName<typeof escrowAbi>>(
  functionName: Name,
  args: ContractFunctionArgs<typeof escrowAbi, "nonpayable" | "payable" | "pure" | "view", Name>,
): Hex {
  return encodeFunctionData({ abi: escrowAbi, functionName, args } as EncodeFunctionDataParameters);
}

type Facts = RequestFacts & { signature?: Hex; authorization?: AuthorizationArguments };

/** Once for each escrow, or for each `subject` on an escrow. */
function onEscrow(
  kind: OperationKind,
  action: KeeperAction & Facts & { caller?: Address },
  data: Hex,
  subject?: string,
): NewOperation {
  const { escrow, caller = null } = action;
  const onceKey = subject === undefined ? `${kind}:${escrow}` : `${kind}:${escrow}:${subject}`;
  return build(kind, action, { escrow, caller, target: escrow, data, onceKey });
}

function paidOnEscrow(
  kind: OperationKind,
  action: CreditableAction,
  data: Hex,
  subject?: string,
): NewOperation {
  const call = action.directTransfer === true ? escrowCall("withDirectTransfer", [data]) : data;
  return { ...onEscrow(kind, action, call, subject), payment: paymentOf(action) };
}

/** With `subject`, once for each subject of an agent. */
function onAccount(
  kind: OperationKind,
  action: AccountAction & Facts,
  call: Pick<NewOperation, "target" | "data" | "payment">,
  subject?: string,
): NewOperation {
  const caller = action.agent;
  const onceKey = subject === undefined ? undefined : `${kind}:${caller}:${subject}`;
  return build(kind, action, { escrow: null, caller, onceKey, ...call });
}

function build(
  kind: OperationKind,
  { requestHash, notAfter, onceKey, authorization, signature = authorization?.signature ?? "0x" }: Facts,
  call: Pick<NewOperation, "escrow" | "caller" | "target" | "data" | "payment" | "onceKey">,
): NewOperation {
  return {
    ...call,
    kind,
    signed: signature !== "0x",
    gasLimit: GAS_LIMITS[kind] + walletGas(signature),
    requestHash,
    onceKey: onceKey ?? call.onceKey,
    notAfter,
  };
}

/** A contract wallet's check of its signature comes on top. */
const walletGas = (signature: Hex): number =>
  signature.length > ORDINARY_SIGNATURE_LENGTH ? CONTRACT_WALLET_GAS : 0;

/** Added by the check of an agent's signature. */
const SIGNATURE_GAS = 30_000;

/** The same operation, carried by its caller's own signature instead of a delegation. */
export function carrySigned(
  operation: NewOperation & { caller: Address },
  { deadline, signature }: { deadline: number; signature: Hex },
): NewOperation {
  const { caller, data, gasLimit, notAfter = deadline } = operation;
  return {
    ...operation,
    signed: true,
    data: escrowCall("withSignature", [caller, deadline, signature, data]),
    gasLimit: gasLimit + SIGNATURE_GAS + walletGas(signature),
    notAfter: Math.min(notAfter, deadline - 1),
  };
}

function paymentOf({ deployment, caller, authorization }: AuthorizedAction) {
  return { asset: deployment.asset.address, payer: caller, nonce: authorization.nonce };
}
