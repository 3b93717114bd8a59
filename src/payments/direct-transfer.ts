/**
 * A direct transfer: someone sent the caller's authorization to the token, and its money reached the escrow without the
 * service (docs/rules.md 12). It is credited if the call can still be performed; otherwise it is refunded.
 */
import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { depositsOf } from "@working-contracts/protocol/ledger";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq, inArray, sql } from "drizzle-orm";
import { decodeFunctionData, type Log, parseEventLogs } from "viem";
import { isCanonical } from "../chain/clients.js";
import { balanceOf, isUsed, tokenAbi } from "../chain/token.js";
import { escrowEvent, parseStoredTerms, waitForIndexed, workingContract } from "../db/onchain.js";
import { expiredAttempt, terms } from "../db/schema.js";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { admitWithinLimits } from "../relayer/limits.js";
import {
  createOperation,
  creationKey,
  type NewOperation,
  refundDirectTransferOperation,
} from "../relayer/operations.js";
import { enqueue, findByAuthorization, findByOnceKey, type OperationRow } from "../relayer/outbox.js";
import { findUse, type LoggedTransaction, logsOf, type UseDeps } from "./authorization-use.js";
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
 * Whether this authorization moved its value to the open escrow in a transaction in which the escrow itself took no
 * deposit from its payer, and the opening did not take it. Throws 503 `settlement_pending` while the index shows no opening,
 * or that transaction is not final: on another branch the money at the escrow can belong to someone else.
 */
export async function isDirectTransfer(
  deps: Deps,
  payment: PaymentAuthorization,
  purpose: "credit" | "refund",
): Promise<boolean> {
  const transfer = await findTransfer(deps, payment);
  if (transfer === null || !(await isTransferredDirectly(deps, payment, transfer))) return false;
  const opening = await readOpening(deps, payment.to);
  // Not opened, so the money is at its address, and another node does not show it yet; or not indexed.
  if (opening === null) throw settlementPending();
  // Money from before can be what the escrow was opened with, and is booked then. Of its initiator's transfers of exactly
  // the deposit, the escrow itself refunds all but one.
  const isOwed = !isBefore(transfer, opening) || (purpose === "refund" && isDeposit(opening, payment));
  if (isOwed) await requireFinal(deps, transfer);
  return isOwed;
}

async function requireFinal(deps: Deps, { blockNumber, blockHash }: LoggedTransaction): Promise<void> {
  const head = await deps.publicClient.getBlockNumber({ cacheTime: 0 });
  const isDeep = head - blockNumber + 1n >= BigInt(deps.config.confirmations);
  // The logs can come from a branch that the chain has left.
  if (!isDeep || (await isCanonical(deps, blockNumber, blockHash)) !== true) throw settlementPending();
}

/** Whether the transaction moved the money without a deposit of its payer at the escrow. */
async function isTransferredDirectly(
  deps: UseDeps,
  payment: PaymentAuthorization,
  { logs, position }: Transfer,
): Promise<boolean> {
  const events = parseEventLogs({ abi: escrowAbi, logs: emittedBy(payment.to, logs) });
  for (const event of events) if (await isOfPayer(deps, payment, position, event)) return false;
  return true;
}

type EscrowEvent = ReturnType<typeof parseEventLogs<typeof escrowAbi>>[number];

/** Whether an escrow event reports a deposit of this payer: others can act in the same transaction. */
async function isOfPayer(
  { publicClient }: UseDeps,
  { from, to, nonce }: PaymentAuthorization,
  position: number,
  { eventName, args, logIndex }: EscrowEvent,
): Promise<boolean> {
  const escrow = { address: to, abi: escrowAbi } as const;
  switch (eventName) {
    case "WorkingContractCreated": {
      // The escrow did not take money that was there before it.
      if (position < logIndex) return false;
      const { initiator } = await publicClient.readContract({ ...escrow, functionName: "terms" });
      return initiator.toLowerCase() === from;
    }
    case "WorkingContractMatched":
      return args.counterparty.toLowerCase() === from;
    case "WorkingContractDisputed": {
      const client = await publicClient.readContract({ ...escrow, functionName: "client" });
      return client.toLowerCase() === from;
    }
    case "VoteSealed":
      return args.backupAgent.toLowerCase() === from;
    case "DirectTransferCredited":
    case "DirectTransferRefunded":
      return args.payer.toLowerCase() === from && args.nonce === nonce;
    default:
      return false;
  }
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
  return hasTransfer(behind, token, payment) ? { ...found, position: used.logIndex } : null;
}

function hasTransfer(
  logs: Log[],
  token: Address,
  { from, to, value }: Pick<PaymentAuthorization, "from" | "to" | "value">,
): boolean {
  return parseEventLogs({ abi: tokenAbi, eventName: "Transfer", logs: emittedBy(token, logs) }).some(
    ({ args }) => args.from.toLowerCase() === from && args.to.toLowerCase() === to && args.value === value,
  );
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
  const { logs, transactionHash, blockNumber, blockHash, position } = transfer;
  const own = emittedBy(payment.to, logs);
  const [atOnce] = parseEventLogs({ abi: escrowAbi, eventName: "WorkingContractCreated", logs: own });
  if (atOnce !== undefined && atOnce.logIndex < position) return { transactionHash, blockNumber, blockHash };
  if (!(await isTransferredDirectly(deps, payment, transfer))) return null;
  const opened = await findOpeningFromBalance(deps, payment, transfer);
  return opened === null ? null : { transactionHash, ...opened };
}

/**
 * An escrow that was opened from its balance credits one deposit of its initiator: this one, unless another took it.
 * If it holds more of the caller's money, an operation first marks which authorization the deposit was.
 */
async function findOpeningFromBalance(
  deps: Deps,
  payment: PaymentAuthorization,
  transfer: Transfer,
): Promise<{ blockNumber: bigint; blockHash: Hex } | null> {
  const opening = await readOpening(deps, payment.to);
  if (opening === null || !isDeposit(opening, payment) || !isBefore(transfer, opening)) return null;
  const { logs, blockNumber, blockHash } = await logsOf(deps, opening, payment.to);
  const behind = logs.filter(({ logIndex }) => (logIndex ?? 0) > opening.logIndex);
  if (hasTransfer(behind, deps.deployment.asset.address, payment)) return null;

  const block = { blockNumber, blockHash };
  if (opening.credited.length > 0) return opening.credited.includes(payment.nonce) ? block : null;
  if ((await unbookedBalance(deps, payment.to)) < payment.value) {
    // Otherwise a later payment of the same amount would be taken for the deposit.
    await enqueueRefund(deps, payment, "mark").catch((error) => {
      if (!(error instanceof AppError)) throw error;
    });
    return block;
  }
  await requireFinal(deps, transfer);
  const reported = await findReported(deps, payment);
  if (!(await mark(deps, reported ?? payment))) return reported === null ? block : null;
  const marked = await readOpening(deps, payment.to);
  return marked?.credited.includes(payment.nonce) === true ? block : null;
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
async function findReported(deps: Deps, payment: PaymentAuthorization): Promise<PaymentAuthorization | null> {
  const created = await findByOnceKey(deps.db, creationKey(payment.to));
  if (created === undefined || created.nonce === payment.nonce) return null;
  const { functionName, args } = decodeFunctionData({ abi: factoryAbi, data: created.data });
  if (functionName !== "create") return null;
  const reported = { ...payment, ...args[1] };
  if (!(await isUsed(deps.publicClient, deps.deployment.asset.address, reported))) return null;
  const transfer = await findTransfer(deps, reported);
  return transfer !== null && (await isTransferredDirectly(deps, reported, transfer)) ? reported : null;
}

type IndexedOpening = NonNullable<Awaited<ReturnType<typeof readOpening>>>;

/** How the index shows the opening of an escrow, and the nonces of transfers that were marked as its deposit. */
async function readOpening({ db }: Pick<Deps, "db">, escrow: Address) {
  const events = await db
    .select({ event: escrowEvent, initiator: workingContract.initiator })
    .from(escrowEvent)
    .innerJoin(workingContract, eq(workingContract.id, escrowEvent.contractId))
    .where(
      and(
        eq(escrowEvent.contractId, escrow),
        inArray(escrowEvent.name, ["WorkingContractCreated", "DirectTransferCredited"]),
      ),
    );
  const created = events.find(({ event }) => event.name === "WorkingContractCreated");
  if (created === undefined) return null;
  const { initiator, event } = created;
  const deposit = BigInt(String(event.args.deposit));
  const credited = events.filter(
    ({ event: { name, args } }) =>
      name === "DirectTransferCredited" &&
      String(args.payer).toLowerCase() === initiator &&
      BigInt(String(args.amount)) === deposit,
  );
  return { ...event, initiator, deposit, credited: credited.map(({ event: { args } }) => args.nonce) };
}

const isDeposit = ({ initiator, deposit }: IndexedOpening, { from, value }: PaymentAuthorization): boolean =>
  from === initiator && value === deposit;

/** Whether the money came before the escrow was opened. */
function isBefore({ blockNumber, position }: Transfer, opening: IndexedOpening): boolean {
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
    await enqueue(db, { ...opening, gasPolicy });
    return true;
  }
  if ((await findRefund(deps, payment)) !== undefined) return true;
  if ((await unbookedBalance(deps, escrow)) < payment.value) return false;
  if (!(await isDirectTransfer(deps, payment, "refund"))) return false;
  const opening = await readOpening(deps, escrow);
  if (opening !== null && isDeposit(opening, payment) && opening.credited.length === 0) {
    // The escrow would take this one for the deposit, and refund nothing.
    const reported = await findReported(deps, payment);
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
