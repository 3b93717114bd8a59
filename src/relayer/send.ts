/** From the queue to the node: lease, simulate, sign, commit, broadcast, strictly in this order. */
import { eq, sql } from "drizzle-orm";
import { type Hex, keccak256, parseTransaction } from "viem";
import { isCanonical } from "../chain/clients.js";
import { isPaused } from "../chain/token.js";
import { REORG_DEPTH } from "../db/onchain.js";
import { type BatchAttempt, type BatchRow, batch, operation } from "../db/schema.js";
import { isOneOf } from "../db/statements.js";
import { fenced, type Head, raiseAlarm, readHead, type SignerContext } from "./context.js";
import { canPass, failureReason, PAYMENT_USED, TOKEN_PAUSED, usedPayments } from "./failures.js";
import { type Lease, leaseOperations, storeUnsent, type Unsent } from "./lease.js";
import { PAYS_OUT } from "./operations.js";
import type { OperationRow } from "./outbox.js";
import { recordAbandoned } from "./results.js";
import {
  type BlockRef,
  batchGas,
  encodeBatch,
  estimateFees,
  type Fees,
  isAncestor,
  maxCostOf,
  replacementFees,
  type SimulationResult,
  simulateOperations,
  stateOf,
} from "./transaction.js";

/** Pause of a signer that cannot pay or has reached the fee cap; other signers continue. */
const PAUSE_MS = 5000;
/** Maximum batches of one signer read to find its next account nonce. */
const MAX_KNOWN_NONCES = 1000;

/** Errors of our contracts that a paused token can cause. */
const TRANSFER_FAILURES: ReadonlySet<string> = new Set(["PaymentFailed", "SafeERC20FailedOperation"]);

/** Sends a batch of waiting operations. Returns whether it did. */
export async function sendNext(context: SignerContext, head: Head): Promise<boolean> {
  const { publicClient, options, memory, crashPoint } = context;
  if (performance.now() < memory.pausedUntil || memory.unpaidHead === head.hash) return false;
  const fees = await estimateFees(publicClient, head, options);
  if (fees === null) {
    raiseAlarm(context, "fee_cap_reached", { baseFeePerGas: head.baseFeePerGas.toString() });
    memory.pausedUntil = performance.now() + PAUSE_MS;
    return false;
  }

  await crashPoint?.("before_lease");
  const lease = await leaseOperations(context, head);
  const leased = lease.operations;
  if (leased.length === 0) return false;
  let isSent = false;
  try {
    const ready = await prepareBatch(context, lease, { seen: head, fees });
    if (ready !== null && ready.passed.length > 0)
      isSent = await signAndSend(context, ready.passed, { fees, ...ready });
  } finally {
    // Otherwise they would block until their leases lapse.
    if (!isSent) await storeUnsent(context, { failed: [], released: leased }).catch(() => undefined);
  }
  return isSent;
}

/**
 * Judges leased operations by a simulation on the newest head, and stores the outcome of those that cannot be sent.
 * Returns null, and stores nothing, if the signer cannot pay, or if that head is not on our branch or is reorganized
 * meanwhile.
 */
async function prepareBatch(
  context: SignerContext,
  { operations, standsOn }: Lease,
  { seen, fees }: { seen: Head; fees: Fees },
): Promise<{ passed: OperationRow[]; head: Head; chainNonce: number } | null> {
  const { publicClient, memory, crashPoint, logger, signer } = context;
  const cost = batchGas(operations) * fees.maxFeePerGas;
  // Read the head again: the lease's dependencies could be newer than `seen`, and would be missing from its state.
  const [head, isPayable] = await Promise.all([
    readHead(publicClient),
    canPay(context, cost, memory.committed),
  ]);
  if (!isPayable) {
    memory.unpaidHead = seen.hash;
    return null;
  }
  const [isOnBranch, results] = await Promise.all([
    isOnOurBranch(context, standsOn, head),
    simulateOperations(context, operations, { head, fees }).catch((error: Error) => error),
  ]);
  // On another branch the simulation can fail for that reason alone.
  if (!isOnBranch) {
    logger.debug({ signer, head: head.number.toString() }, "the node is behind the outbox");
    return null;
  }
  if (results instanceof Error) throw results;
  const judged = await judge(context, operations, head, results);
  await crashPoint?.("after_simulation");
  // The block could have been reorganized during the simulation.
  const [stillStands, chainNonce] = await Promise.all([
    isCanonical(context, head.number, head.hash),
    readNonce(context),
  ]);
  if (stillStands !== true) return null;
  await storeUnsent(context, judged);
  return { passed: judged.passed, head, chainNonce };
}

/**
 * Whether `head` builds on these blocks. Ignores blocks too deep for a reorg: its owner or the follower resends a batch
 * that lost its block long before; if neither can, other signers must not wait for it.
 */
async function isOnOurBranch(
  context: SignerContext,
  blocks: readonly BlockRef[],
  head: Head,
): Promise<boolean> {
  const near = blocks.filter(({ blockNumber }) => head.number < blockNumber + REORG_DEPTH);
  const areAncestors = await Promise.all(near.map((block) => isAncestor(context, block, head)));
  return !areAncestors.includes(false);
}

type Judged = Unsent & { passed: OperationRow[] };

async function judge(
  context: SignerContext,
  operations: OperationRow[],
  head: Head,
  results: readonly SimulationResult[],
): Promise<Judged> {
  const { publicClient, deployment } = context;
  const judged: Judged = { passed: [], failed: [], released: [] };
  const used = await usedPayments(context, operations, results, head);
  const touched = new Set<string>();
  let tokenPaused: boolean | undefined;
  for (const [index, row] of operations.entries()) {
    const result = results[index];
    if (result === undefined || result.success) {
      judged.passed.push(row);
      for (const key of [row.escrow, row.caller, row.payer]) if (key !== null) touched.add(key);
      continue;
    }
    // An operation ahead of it in this batch could be the cause. Judge it again once that one is on chain.
    if ([row.escrow, row.caller, row.payer].some((key) => key !== null && touched.has(key))) {
      judged.released.push(row);
      continue;
    }
    // A refund, too, is the service's own work.
    const fromKeeper = row.caller === null || PAYS_OUT.has(row.kind);
    if (row.payer !== null || fromKeeper) {
      tokenPaused ??= await isPaused(publicClient, deployment.asset.address, stateOf(head));
    }
    const isOver = row.notAfter !== null && row.notAfter < head.timestamp;
    const cause = used.has(row.id) ? PAYMENT_USED : failureReason(result.data, result);
    let reason = isOver ? "Expired" : cause;
    // For those that pay out, the token's own error comes through, under any name.
    if (tokenPaused === true && (TRANSFER_FAILURES.has(reason) || PAYS_OUT.has(row.kind)))
      reason = TOKEN_PAUSED;
    const isHeld = reason === TOKEN_PAUSED || canPass(reason, { ...row, fromKeeper });
    judged.failed.push({ row, state: isHeld ? "held" : "rejected", reason, data: result.data });
  }
  // A published operation can fail because it was already applied, by a batch abandoned too early.
  await recordAbandoned(
    context,
    judged.failed.flatMap(({ row }) => (row.publishedAt === null ? [] : [row.id])),
    head,
  );
  return judged;
}

/** Sends an empty batch with an account nonce below ours, which a foreign transaction used until a reorg removed it. */
export async function fillGap(context: SignerContext, head: Head): Promise<void> {
  const { publicClient, options, memory } = context;
  const nonce = memory.gap?.nonce;
  memory.gap = null;
  const fees = await estimateFees(publicClient, head, options);
  if (fees === null) {
    raiseAlarm(context, "fee_cap_reached", { baseFeePerGas: head.baseFeePerGas.toString() });
    return;
  }
  if (!(await canPay(context, batchGas([]) * fees.maxFeePerGas))) return;
  const chainNonce = await readNonce(context);
  const isSent = await signAndSend(context, [], { fees, head, chainNonce, wanted: nonce });
  if (isSent) raiseAlarm(context, "foreign_nonce", { nonce });
}

/** Whether the signer can pay this for a batch, beside its pending ones, as nodes require. Alarms if it never can. */
async function canPay(context: SignerContext, cost: bigint, committed = 0n): Promise<boolean> {
  const { publicClient, signer, memory } = context;
  const balance = await publicClient.getBalance({ address: signer });
  if (balance >= cost + committed) return true;
  if (balance >= cost) return false;
  raiseAlarm(context, "signer_without_gas", { balance: balance.toString(), needed: cost.toString() });
  memory.pausedUntil = performance.now() + PAUSE_MS;
  return false;
}

const readNonce = ({ publicClient, signer }: SignerContext): Promise<number> =>
  publicClient.getTransactionCount({ address: signer, blockTag: "latest" });

/** If `wanted` is given, sends with exactly this account nonce or not at all. */
async function signAndSend(
  context: SignerContext,
  operations: OperationRow[],
  {
    fees,
    head,
    chainNonce,
    wanted,
  }: { fees: Fees; head: Head; chainNonce: number; wanted?: number | undefined },
): Promise<boolean> {
  const { signer, memory, crashPoint, metrics, logger } = context;
  const ids = operations.map(({ id }) => id);
  const nonce = await nextNonce(context, chainNonce);
  if (nonce === null) memory.shortNonces = Math.max(memory.shortNonces, 1);
  if (nonce === null || (wanted !== undefined && nonce !== wanted)) return false;
  const call = { data: encodeBatch(operations), nonce, gas: batchGas(operations) };
  const attempt = await signAttempt(context, { ...fees, ...call, head });
  await crashPoint?.("after_signing");

  const id = await fenced(context, async (tx) => {
    const [stored] = await tx
      .insert(batch)
      .values({
        signer,
        epoch: context.epoch,
        accountNonce: nonce,
        attempts: [attempt],
        operationIds: ids,
      })
      .returning({ id: batch.id });
    if (stored === undefined) throw new Error("the batch was not stored");
    const taken = await tx.execute(sql`
      update app.operation set state = 'sent', batch_id = ${stored.id.toString()}::bigint,
        leased_until = null, retry_at = null, reason = null, reason_data = null,
        tries = case when reason = ${TOKEN_PAUSED} then 0 else tries end,
        published_at = coalesce(published_at, now()), updated_at = now()
      where ${isOneOf(operation.id, ids)} and state in ('queued', 'held') and signer = ${signer} and leased_until > now()`);
    if (taken.rowCount !== operations.length) throw new Error("the lease of some operations lapsed");
    return stored.id;
  });
  await crashPoint?.("after_commit");

  metrics?.batches("sent");
  metrics?.signed({ signer, operations: operations.length, maxFeePerGas: fees.maxFeePerGas });
  logger.info(
    { signer, batch: id.toString(), nonce, hash: attempt.hash, operations: ids.map(String) },
    "batch sent",
  );
  memory.committed += maxCostOf(attempt);
  memory.broadcastAt.set(id, head.number);
  await broadcast(context, attempt);
  await crashPoint?.("after_broadcast");
  return true;
}

/**
 * Signs and sends a replacement (same nonce, same calls, higher fees) if the batch has waited too many blocks. Returns
 * whether it did: not without the signer's key, beyond the cap on fees, or if the signer cannot pay for it, each with an
 * alarm.
 */
export async function replaceIfStuck(context: SignerContext, row: BatchRow, head: Head): Promise<boolean> {
  const { publicClient, account, options, memory, metrics, logger, signer } = context;
  const last = row.attempts.at(-1);
  if (last === undefined) return false;
  if (account === null) {
    raiseAlarm(context, "signer_missing", { batch: row.id.toString(), hash: last.hash });
    return false;
  }
  const since = memory.waitingSince.get(row.id);
  // Counted from when this loop first saw it waiting, so that the same bytes get a chance after a reorg.
  if (since === undefined || since > head.number) memory.waitingSince.set(row.id, head.number);
  if (since === undefined || head.number - since < BigInt(options.replaceAfterBlocks)) return false;

  const fees = replacementFees({
    previous: {
      maxFeePerGas: BigInt(last.maxFeePerGas),
      maxPriorityFeePerGas: BigInt(last.maxPriorityFeePerGas),
    },
    market: await estimateFees(publicClient, head, options),
    caps: options,
  });
  const alarm: typeof raiseAlarm = (...alarmed) => {
    if (memory.broadcastAt.get(row.id) !== head.number) raiseAlarm(...alarmed);
  };
  if (fees === null) {
    alarm(context, "fee_cap_reached", { batch: row.id.toString(), hash: last.hash });
    return false;
  }
  const { data = "0x", gas = 0n } = parseTransaction(last.raw);
  const balance = await publicClient.getBalance({ address: signer });
  if (balance < gas * fees.maxFeePerGas) {
    const needed = (gas * fees.maxFeePerGas).toString();
    alarm(context, "signer_without_gas", { batch: row.id.toString(), balance: balance.toString(), needed });
    return false;
  }
  const attempt = await signAttempt(context, { ...fees, data, nonce: row.accountNonce, gas, head });
  const attempts = [...row.attempts, attempt];
  await fenced(context, async (tx) => {
    await tx.update(batch).set({ attempts, updatedAt: sql`now()` }).where(eq(batch.id, row.id));
  });
  row.attempts = attempts;
  metrics?.batches("replaced");
  metrics?.signed({ signer, operations: row.operationIds.length, maxFeePerGas: fees.maxFeePerGas });
  const facts = { signer, batch: row.id.toString(), operations: row.operationIds.map(String) };
  logger.warn({ ...facts, hash: attempt.hash, replaces: last.hash }, "batch replaced");
  memory.broadcastAt.set(row.id, head.number);
  memory.waitingSince.set(row.id, head.number);
  await broadcast(context, attempt);
  return true;
}

/** Signs one transaction of a batch without sending it. Throws if this process does not hold the signer's key. */
async function signAttempt(
  { account, deployment: { chainId, relay: to } }: SignerContext,
  { head, ...call }: Fees & { data: Hex; nonce: number; gas: bigint; head: Head },
): Promise<BatchAttempt> {
  if (account === null) throw new Error("nothing can be signed for an unowned signer: its key is not here");
  const raw = await account.signTransaction({ ...call, type: "eip1559", chainId, to });
  return {
    raw,
    hash: keccak256(raw),
    gas: call.gas.toString(),
    maxFeePerGas: call.maxFeePerGas.toString(),
    maxPriorityFeePerGas: call.maxPriorityFeePerGas.toString(),
    signedAtBlock: head.number.toString(),
  };
}

/**
 * Sends signed bytes to the node, of one batch oldest first: if the signer cannot afford the newest, an older one can still
 * be mined. The response does not matter: receipts decide, and the bytes can be sent again.
 */
export async function broadcast(
  { publicClient, logger, signer }: SignerContext,
  ...attempts: BatchAttempt[]
): Promise<void> {
  for (const { raw, hash } of attempts) {
    await publicClient.sendRawTransaction({ serializedTransaction: raw }).catch((error: unknown) => {
      logger.debug({ signer, hash, error }, "broadcast returned an error");
    });
  }
}

/** The lowest account nonce that no batch of ours holds; null if the chain knows fewer than are final here. */
async function nextNonce({ db, signer }: SignerContext, chainNonce: number): Promise<number | null> {
  const { rows } = await db.execute<{ account_nonce: string; state: string }>(sql`
    select account_nonce::text, state from app.batch where signer = ${signer} and account_nonce >= ${chainNonce}
    order by batch.account_nonce limit ${MAX_KNOWN_NONCES}`);
  if (rows.some(({ state }) => state !== "sent" && state !== "quarantined")) return null;
  let nonce = chainNonce;
  for (const row of rows) {
    if (Number(row.account_nonce) !== nonce) break;
    nonce += 1;
  }
  return nonce;
}
