/**
 * A direct transfer: someone sent the caller's authorization to the token, and its money reached the escrow without the
 * service (docs/rules.md 12). It is credited if the call can still be performed; otherwise it is refunded.
 */
import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { depositsOf } from "@working-contracts/protocol/ledger";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq, inArray, sql } from "drizzle-orm";
import { decodeFunctionData, type Log, numberToHex, parseEventLogs } from "viem";
import { isCanonical } from "../chain/clients.js";
import { balanceOf, isUsed, tokenAbi } from "../chain/token.js";
import {
  escrowEvent,
  indexedBlock,
  parseStoredTerms,
  waitForIndexed,
  workingContract,
} from "../db/onchain.js";
import { APPLIED, expiredAttempt, terms } from "../db/schema.js";
import type { Deps } from "../deps.js";
import { admitWithinLimits } from "../relayer/limits.js";
import {
  createOperation,
  creationKey,
  type NewOperation,
  refundDirectTransferOperation,
} from "../relayer/operations.js";
import { enqueue, findByAuthorization, findByOnceKey, type OperationRow } from "../relayer/outbox.js";
import { findUse, type LoggedTransaction, type UseDeps } from "./authorization-use.js";
import {
  type CallIdentity,
  hashOfBody,
  inclusionOf,
  requestHash,
  settlementPending,
} from "./relayed-call.js";
import { inTokenForm } from "./verify-payment.js";
import type { PaymentAuthorization } from "./x402.js";

/**
 * Whether this authorization moved its value to the open escrow otherwise than by an action of the escrow, and the opening
 * did not take it. Throws 503 `settlement_pending` while that transaction is not final: on another branch the money at the
 * escrow can belong to someone else.
 */
export async function isOwedDirectTransfer(
  deps: Deps,
  payment: PaymentAuthorization,
  purpose: "credit" | "refund",
): Promise<boolean> {
  const transfer = await findTransfer(deps, payment);
  if (transfer === null) return false;
  const opening = await readOpening(deps, payment);
  if (actionOf(payment, transfer, opening) !== undefined) return false;
  // Money from before the opening can be what the escrow was opened with; then it is booked. The escrow itself refunds
  // all but one of its initiator's transfers of exactly the deposit.
  const isOwed = !isBefore(transfer, opening) || (purpose === "refund" && opening.deposit !== null);
  if (isOwed) await requireFinal(deps, transfer);
  return isOwed;
}

async function requireFinal(deps: Deps, { blockNumber, blockHash }: LoggedTransaction): Promise<void> {
  const head = await deps.publicClient.getBlockNumber({ cacheTime: 0 });
  const isDeep = head - blockNumber + 1n >= BigInt(deps.config.confirmations);
  // The logs can come from a branch that the chain has left.
  if (!isDeep || (await isCanonical(deps, blockNumber, blockHash)) !== true) throw settlementPending();
}

/**
 * The event of the action that took this payment, if one did: an escrow collects right behind its event. Behind an opening
 * from its balance, which collects nothing, anyone can place a transfer.
 */
function actionOf({ to }: PaymentAuthorization, { logs, position }: Transfer, opening: Opening) {
  const [action] = parseEventLogs({
    abi: escrowAbi,
    eventName: ["WorkingContractCreated", "WorkingContractMatched", "WorkingContractDisputed", "VoteSealed"],
    logs: emittedBy(to, logs).filter(({ logIndex }) => logIndex === position - 1),
  });
  const isOpening = action?.eventName === "WorkingContractCreated";
  return isOpening && opening.deposit !== "collected" ? undefined : action?.eventName;
}

/** The transaction that moved the value by this nonce ("One nonce, one transfer"), and the log index of the nonce's use. */
type Transfer = LoggedTransaction & { position: number };

async function findTransfer(deps: UseDeps, payment: PaymentAuthorization): Promise<Transfer | null> {
  const found = await findUse(deps, payment);
  if (found === null) return null;
  const token = deps.deployment.asset.address;
  const ofToken = emittedBy(token, found.logs);
  const { from: authorizer, nonce } = payment;
  const use = { abi: tokenAbi, eventName: "AuthorizationUsed", args: { authorizer, nonce } } as const;
  const [used] = parseEventLogs({ ...use, logs: ofToken });
  if (used === undefined) return null;
  const behind = ofToken.filter(({ logIndex }) => logIndex === used.logIndex + 1);
  const { to, value } = payment;
  const moved = { abi: tokenAbi, eventName: "Transfer", args: { from: authorizer, to, value } } as const;
  const isMoved = parseEventLogs({ ...moved, logs: behind }).length > 0;
  return isMoved ? { ...found, position: used.logIndex } : null;
}

/** Filters before decoding: others can log what looks alike. */
const emittedBy = (emitter: Address, logs: Log[]): Log[] =>
  logs.filter(({ address }) => address.toLowerCase() === emitter);

/**
 * Finds how someone else opened the escrow with the caller's deposit, by this authorization or its money: the transaction
 * that moved the deposit, and the block that opened the escrow.
 */
export async function findOpening(deps: Deps, payment: PaymentAuthorization) {
  if (!(await isUsed(deps.publicClient, deps.deployment.asset.address, payment))) return null;
  const transfer = await findTransfer(deps, payment);
  if (transfer === null) return null;
  // Its transaction can be the opening's.
  const timeoutMs = deps.config.settlementWaitMs;
  await waitForIndexed(deps.db, { blockNumber: transfer.blockNumber, timeoutMs });
  const opening = await readOpening(deps, payment);
  if (!(await isTheDeposit(deps, payment, transfer, opening))) return null;
  const { blockNumber, blockHash } = opening;
  return { transactionHash: transfer.transactionHash, blockNumber, blockHash };
}

/**
 * Whether the escrow was opened with this payment. If it was opened from its balance, an operation marks one transfer of
 * exactly the deposit as that: the one that a call was answered with, or the first that is asked about.
 */
async function isTheDeposit(
  deps: Deps,
  payment: PaymentAuthorization,
  transfer: Transfer,
  opening: Opening,
): Promise<boolean> {
  const action = actionOf(payment, transfer, opening);
  if (action !== undefined) return action === "WorkingContractCreated";
  if (opening.deposit !== "unmarked") return opening.deposit === payment.nonce;
  // A node that does not show all money can hide a transfer from after the opening, but none that it was opened with.
  if (isBefore(transfer, opening) && (await unbookedBalance(deps, payment.to)) < payment.value) {
    const other = await findOtherCreation(deps, payment);
    if (other !== undefined && !APPLIED.includes(other.state)) throw settlementPending();
    // That payment's call succeeds. If its money comes as well, this one's is refunded.
    if (other !== undefined) return false;
    // Otherwise a later payment of the same amount would be taken for the deposit.
    await enqueueRefund(deps, payment, "mark");
    return true;
  }
  await requireFinal(deps, transfer);
  const reported = await findReported(deps, payment, opening);
  if (!(await mark(deps, reported ?? payment))) return reported === null;
  return (await readOpening(deps, payment)).deposit === payment.nonce;
}

/** Marks a transfer as the deposit of an open escrow. Returns whether the chain did; throws 503 while it has not. */
async function mark(deps: Deps, payment: PaymentAuthorization): Promise<boolean> {
  const stored = await enqueueRefund(deps, payment, "mark");
  const timeoutMs = deps.config.settlementWaitMs;
  const row = await deps.outbox.waitFor(stored.id, { timeoutMs });
  if (row === null) throw settlementPending();
  if (row.state === "rejected") return false;
  const target = { ...inclusionOf(row), escrow: payment.to, timeoutMs };
  if (!(await waitForIndexed(deps.db, target))) throw settlementPending();
  return true;
}

/** The authorization whose creation call already got a success response, if its money was there before, too. */
async function findReported(
  deps: Deps,
  payment: PaymentAuthorization,
  opening: Opening,
): Promise<PaymentAuthorization | null> {
  const created = await findOtherCreation(deps, payment);
  if (created === undefined) return null;
  const { functionName, args } = decodeFunctionData({ abi: factoryAbi, data: created.data });
  if (functionName !== "create") return null;
  const reported = { ...payment, ...args[1] };
  if (!(await isUsed(deps.publicClient, deps.deployment.asset.address, reported))) return null;
  const transfer = await findTransfer(deps, reported);
  return transfer !== null && actionOf(reported, transfer, opening) === undefined ? reported : null;
}

/** The operation, pending or done, that creates the payment's escrow with another payment. */
async function findOtherCreation(
  { db }: Pick<Deps, "db">,
  { to, nonce }: PaymentAuthorization,
): Promise<OperationRow | undefined> {
  const created = await findByOnceKey(db, creationKey(to));
  return created?.nonce === nonce ? undefined : created;
}

interface Opening {
  blockNumber: bigint;
  blockHash: Hex;
  logIndex: number;
  /**
   * How the escrow got its deposit: collected, from its balance without a mark yet, or from its balance by the marked
   * authorization with this nonce. Null if the payment cannot be the deposit: it is another payer's, or of another amount.
   */
  deposit: "collected" | "unmarked" | Hex | null;
}

/** Where an escrow keeps `openedFromBalance` (EscrowState.sol): its slot of facts, and the number of bits below the flag. */
const FLAG = { slot: numberToHex(1), bitsBelow: 240n };

/**
 * The opening of the payment's escrow. That it was opened from its balance is in no log: the escrow remembers it until a
 * transfer is marked as the deposit. Throws 503 `settlement_pending` if the escrow is not indexed, or not open: then the
 * money is at its address, and another node does not show it yet.
 */
async function readOpening(
  { db, publicClient }: Pick<Deps, "db" | "publicClient">,
  { from, to: escrow, value }: PaymentAuthorization,
): Promise<Opening> {
  // First the block of the flag, then the events up to it: they show the mark if the flag is no longer set.
  const block = (await indexedBlock(db)) ?? -1n;
  const rows = await db
    .select({ event: escrowEvent, initiator: workingContract.initiator })
    .from(escrowEvent)
    .innerJoin(workingContract, eq(workingContract.id, escrowEvent.contractId))
    .where(and(eq(escrowEvent.contractId, escrow), inArray(escrowEvent.name, OPENING_EVENTS)));
  const find = (name: string) => rows.find(({ event }) => event.name === name);
  const created = find("WorkingContractCreated");
  if (created === undefined || created.event.blockNumber > block) throw settlementPending();
  const { blockNumber, blockHash, logIndex, args } = created.event;
  const opening = { blockNumber, blockHash, logIndex };
  if (from !== created.initiator || value !== BigInt(String(args.deposit)))
    return { ...opening, deposit: null };

  const dispute = find("WorkingContractDisputed")?.event;
  const marked = rows.find(({ event: { name, args, blockNumber, logIndex } }) => {
    const isOfPayer = name === "DirectTransferCredited" && String(args.payer).toLowerCase() === from;
    // A bond can be as high as the deposit.
    const isBond = blockNumber === dispute?.blockNumber && logIndex === dispute.logIndex + 1;
    return isOfPayer && BigInt(String(args.amount)) === value && !isBond;
  });
  if (marked !== undefined) return { ...opening, deposit: marked.event.args.nonce as Hex };
  const { slot, bitsBelow } = FLAG;
  const facts = await publicClient.getStorageAt({ address: escrow, slot, blockNumber: block });
  return { ...opening, deposit: BigInt(facts ?? 0) >> bitsBelow === 1n ? "unmarked" : "collected" };
}

const OPENING_EVENTS = ["WorkingContractCreated", "WorkingContractDisputed", "DirectTransferCredited"];

/** Whether the money came before the escrow was opened. */
function isBefore({ blockNumber, position }: Transfer, opening: Opening): boolean {
  if (blockNumber !== opening.blockNumber) return blockNumber < opening.blockNumber;
  return position < opening.logIndex;
}

type StoredTerms = (typeof terms.$inferSelect)["escrowTerms"];

/** Whether the escrow address holds at least `amount`: before it is opened, all its money is its initiator's. */
export async function holdsAtLeast(deps: UseDeps, escrow: Address, amount: bigint): Promise<boolean> {
  return (await balanceOf(deps.publicClient, deps.deployment.asset.address, escrow)) >= amount;
}

/**
 * For a refused paid call: if its money is already at the escrow, stores the operation that refunds it and returns true.
 * An escrow past its match deadline refunds by being opened. Throws 429 if that is beyond its payer's gas limits.
 */
export async function refundDirectTransfer(
  deps: Deps,
  payment: PaymentAuthorization,
  call: CallIdentity,
): Promise<boolean> {
  const { db, deployment } = deps;
  const escrow = payment.to;
  if (payment.value === 0n) return false;
  const [row] = await db
    .select({
      bodyHash: sql<string | null>`coalesce(${terms.bodyHash}, ${expiredAttempt.bodyHash})`,
      escrowTerms: sql<StoredTerms | null>`coalesce(${terms.escrowTerms}, ${expiredAttempt.escrowTerms})`,
      phase: workingContract.phase,
    })
    .from(sql`(select ${escrow} as id) asked`)
    .leftJoin(terms, sql`${terms.id} = asked.id`)
    .leftJoin(expiredAttempt, sql`${expiredAttempt.id} = asked.id`)
    .leftJoin(workingContract, sql`${workingContract.id} = asked.id`);
  if (!row?.escrowTerms || !(await isUsed(deps.publicClient, deps.deployment.asset.address, payment)))
    return false;
  // An operation that still carries it credits it, or is refused and comes here.
  const key = { asset: deployment.asset.address, payer: payment.from, nonce: payment.nonce };
  if ((await findByAuthorization(db, key)) !== undefined) return false;

  if (row.phase === null || row.phase === "none") {
    const onChain = parseStoredTerms(row.escrowTerms);
    const deposit = depositsOf(onChain).initiator;
    // Its outcome answers the call that is stored with it, so only the creation of this escrow can be that.
    const isOwn = onChain.initiator === payment.from && row.bodyHash === hashOfBody(call.rawBody);
    if (!isOwn || !(await holdsAtLeast(deps, escrow, deposit))) return false;
    // The operation occupies the payment's nonce, so that of another payment must stay free.
    if ((await findTransfer(deps, payment)) === null) return false;
    const gasPolicy = await admitWithinLimits(deps, payment.from, "refund");
    const opening = createOperation({
      deployment,
      escrow,
      caller: payment.from,
      terms: onChain,
      authorization: inTokenForm(payment, deployment),
      requestHash: requestHash(call),
    });
    // Another payment's creation can be pending, for which this one's money is used.
    return (await enqueue(db, { ...opening, gasPolicy })).operation.nonce === payment.nonce;
  }
  if ((await findRefund(deps, payment)) !== undefined) return true;
  if ((await unbookedBalance(deps, escrow)) < payment.value) return false;
  if (!(await isOwedDirectTransfer(deps, payment, "refund"))) return false;
  const opening = await readOpening(deps, payment);
  if (opening.deposit === "unmarked") {
    // The escrow would take this one for the deposit, and refund nothing.
    const reported = await findReported(deps, payment, opening);
    if (reported !== null) await mark(deps, reported);
  }
  await enqueueRefund(deps, payment, "refund");
  return true;
}

async function enqueueRefund(
  deps: Deps,
  payment: PaymentAuthorization,
  purpose: "refund" | "mark",
): Promise<OperationRow> {
  const earlier = await findRefund(deps, payment);
  if (earlier !== undefined) return earlier;
  const gasPolicy = await admitWithinLimits(deps, payment.from, purpose);
  return (await enqueue(deps.db, { ...refundOf(deps, payment), gasPolicy })).operation;
}

function refundOf({ deployment }: Deps, payment: PaymentAuthorization): NewOperation {
  const { from: caller, to: escrow, value: amount } = payment;
  const authorization = inTokenForm(payment, deployment);
  return refundDirectTransferOperation({ escrow, caller, amount, authorization });
}

/** Its refund, pending or done. */
function findRefund(deps: Deps, payment: PaymentAuthorization): Promise<OperationRow | undefined> {
  return findByOnceKey(deps.db, refundOf(deps, payment).onceKey ?? "");
}

/** Money at an open escrow that its books do not contain. */
async function unbookedBalance({ publicClient, deployment }: UseDeps, escrow: Address): Promise<bigint> {
  const [balance, booked] = await Promise.all([
    balanceOf(publicClient, deployment.asset.address, escrow),
    publicClient.readContract({ address: escrow, abi: escrowAbi, functionName: "booked" }),
  ]);
  return balance - booked;
}
