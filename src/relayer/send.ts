/** From the queue to the node: claim, simulate, sign, commit, broadcast, in this order and no other. */

import type { Hex } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import {
  BaseError,
  ContractFunctionZeroDataError,
  keccak256,
  parseAbi,
  type TransactionSerializableEIP1559,
} from "viem";
import { failedExecution } from "../chain/failed-execution.js";
import type { BatchAttempt } from "../db/schema.js";
import { batch } from "../db/schema.js";
import { claimOperations, hasWaiting, storeUnsent, type Unsent } from "./claim.js";
import { type Head, raiseAlarm, readHead, type SignerContext } from "./context.js";
import { recordGivenUp } from "./given-up.js";
import type { OperationRow } from "./outbox.js";
import { fenced } from "./ownership.js";
import { isCanonical, isTrusted } from "./receipts.js";
import { simulateOperations, stateOf } from "./simulate.js";
import { batchGas, encodeBatch, estimateFees, type Fees } from "./transaction.js";
import { failureReason, judgeFailure, TOKEN_PAUSED } from "./verdict.js";

/** Pause of a signer that cannot pay or may not send; the others go on. */
const PAUSE_MS = 5000;
/** Batches of one signer that are looked at to find its next account nonce. */
const MAX_KNOWN_NONCES = 1000;

/** Failures of our contracts that a token which is paused can be behind. */
const TRANSFER_FAILURES: ReadonlySet<string> = new Set(["PaymentFailed", "SafeERC20FailedOperation"]);
/** Of these the token's own error comes through, whatever it is called. */
const PAYS_OUT: ReadonlySet<string> = new Set(["return-surplus", "claim-deferred"]);

const pausableAbi = parseAbi(["function paused() view returns (bool)"]);

/**
 * A batch whose block is gone is sent again by its owner or caretaker long before so many blocks have passed; where
 * neither can, the others go on.
 */
const BRANCH_DEPTH = 64n;

/** Sends one batch where there is something to send. Answers whether it did. */
export async function sendNext(context: SignerContext, head: Head): Promise<boolean> {
  const { memory, crashPoint, logger, signer } = context;
  if (Date.now() < memory.pausedUntil || !(await hasWaiting(context))) return false;

  const { publicClient, options } = context;
  const fees = await estimateFees(publicClient, head, options.maxFeePerGas);
  if (fees === null) {
    raiseAlarm(context, "fee_cap_reached", { baseFeePerGas: head.baseFeePerGas.toString() });
    memory.pausedUntil = Date.now() + PAUSE_MS;
    return false;
  }

  await crashPoint("before_claim");
  const { operations: claimed, standsOn } = await claimOperations(context, head);
  if (claimed.length === 0) return false;
  let passed: OperationRow[] = [];
  let current: Head;
  try {
    // What the claim rests on may have been mined since `head`: on an older state it would look impossible.
    current = await readHead(publicClient);
    if (!(await isOnOurBranch(context, standsOn, current))) {
      logger.debug({ signer, head: current.number.toString() }, "the node is behind the outbox");
      await release(context, claimed);
      return false;
    }
    const judged = await judge(context, claimed, current);
    await crashPoint("after_simulation");
    // The node may have changed its mind meanwhile.
    if ((await isCanonical(context, current.number, current.hash)) !== true) {
      await release(context, claimed);
      return false;
    }
    await storeUnsent(context, judged);
    passed = judged.passed;
  } catch (error) {
    await release(context, claimed);
    throw error;
  }
  if (passed.length === 0) return false;
  try {
    return await signAndSend(context, passed, fees, current);
  } catch (error) {
    await release(context, passed);
    throw error;
  }
}

/** Whether `head` has these blocks, as far as they are near enough for a reorganisation. */
async function isOnOurBranch(
  context: SignerContext,
  blocks: readonly { number: bigint; hash: string }[],
  head: Head,
): Promise<boolean> {
  const near = blocks.filter(({ number }) => head.number < number + BRANCH_DEPTH);
  const trusted = await Promise.all(near.map((block) => isTrusted(context, block, head)));
  return !trusted.includes(false);
}

/** Claims lapse by themselves; giving them back at once spares the wait. */
async function release(context: SignerContext, rows: OperationRow[]): Promise<void> {
  await storeUnsent(context, { rejected: [], held: [], released: rows }).catch(() => undefined);
}

async function judge(
  context: SignerContext,
  operations: OperationRow[],
  head: Head,
): Promise<Unsent & { passed: OperationRow[] }> {
  const { publicClient, signer, deployment } = context;
  const now = Math.min(Math.floor(Date.now() / 1000), head.timestamp + 15);
  const results = await simulateOperations({
    publicClient,
    signer,
    relay: deployment.relay,
    operations,
    head,
    now,
  });
  const judged: Unsent & { passed: OperationRow[] } = { passed: [], rejected: [], held: [], released: [] };
  const touched = new Set<string>();
  let tokenPaused: boolean | undefined;
  for (const [index, row] of operations.entries()) {
    const result = results[index];
    if (result === undefined || result.success) {
      judged.passed.push(row);
      for (const key of [row.escrow, row.caller, row.payer]) if (key !== null) touched.add(key);
      continue;
    }
    // One that travels with it may be the cause, and is not on the chain yet: judged again when it is.
    if ([row.escrow, row.caller, row.payer].some((key) => key !== null && touched.has(key))) {
      judged.released.push(row);
      continue;
    }
    if (row.payer !== null || row.caller === null) {
      tokenPaused ??= await isPaused(publicClient, deployment.asset.address, head);
    }
    const isOver = row.notAfter !== null && row.notAfter < head.timestamp;
    const reason = isOver ? "Expired" : failureReason(result.data, result.outOfGas);
    const verdict = judgeFailure({
      reason,
      data: result.data,
      fromKeeper: row.caller === null,
      tries: row.tries,
      answered: row.response !== null,
      tokenPaused: tokenPaused === true && (TRANSFER_FAILURES.has(reason) || PAYS_OUT.has(row.kind)),
    });
    const list = verdict.verdict === "reject" ? judged.rejected : judged.held;
    list.push({ row, reason: verdict.reason, data: verdict.data });
  }
  // One that was published may have failed because it is applied already: by a batch that was given up too early.
  await recordGivenUp(
    context,
    [...judged.rejected, ...judged.held]
      .filter(({ row }) => row.publishedAt !== null)
      .map(({ row }) => row.id),
    head,
  );
  return judged;
}

/** At that block. A token without `paused` is never paused; a node that does not answer makes the round fail. */
async function isPaused(
  publicClient: SignerContext["publicClient"],
  asset: Hex,
  head: Head,
): Promise<boolean> {
  try {
    return await publicClient.readContract({
      address: asset,
      abi: pausableAbi,
      functionName: "paused",
      ...stateOf(head),
    });
  } catch (error) {
    const isEmpty =
      error instanceof BaseError &&
      error.walk((cause) => cause instanceof ContractFunctionZeroDataError) !== null;
    if (isEmpty || failedExecution(error) !== null) return false;
    throw error;
  }
}

/**
 * An empty batch for an account nonce below our own that a foreign transaction had used and a reorganisation gave back:
 * nothing that was signed after it can be mined before it.
 */
export async function fillGap(context: SignerContext, head: Head): Promise<void> {
  const { publicClient, options, memory } = context;
  const nonce = memory.gap?.nonce;
  memory.gap = null;
  const fees = await estimateFees(publicClient, head, options.maxFeePerGas);
  if (fees === null) raiseAlarm(context, "fee_cap_reached", { baseFeePerGas: head.baseFeePerGas.toString() });
  else if (await signAndSend(context, [], fees, head, nonce)) raiseAlarm(context, "foreign_nonce", { nonce });
}

/** `wanted`: sent with this account nonce or not at all. */
async function signAndSend(
  context: SignerContext,
  operations: OperationRow[],
  fees: Fees,
  head: Head,
  wanted?: number,
): Promise<boolean> {
  const { publicClient, signer, deployment, memory, crashPoint, metrics, logger } = context;
  const [balance, chainNonce] = await Promise.all([
    publicClient.getBalance({ address: signer }),
    publicClient.getTransactionCount({ address: signer, blockTag: "latest" }),
  ]);
  const gas = batchGas(operations);
  if (balance < gas * fees.maxFeePerGas) {
    raiseAlarm(context, "signer_without_gas", {
      balance: balance.toString(),
      needed: (gas * fees.maxFeePerGas).toString(),
    });
    memory.pausedUntil = Date.now() + PAUSE_MS;
    await release(context, operations);
    return false;
  }
  const nonce = await nextNonce(context, chainNonce);
  if (nonce === null) memory.shortNonces = Math.max(memory.shortNonces, 1);
  if (nonce === null || (wanted !== undefined && nonce !== wanted)) {
    await release(context, operations);
    return false;
  }
  const attempt = await signAttempt(context, {
    chainId: deployment.chainId,
    type: "eip1559",
    to: deployment.relay,
    data: encodeBatch(operations),
    nonce,
    gas,
    ...fees,
    head,
  });
  await crashPoint("after_signing");

  const id = await fenced(context, async (tx) => {
    const [stored] = await tx
      .insert(batch)
      .values({
        signer,
        epoch: context.epoch,
        accountNonce: nonce,
        attempts: [attempt],
        operationIds: operations.map((row) => row.id),
      })
      .returning({ id: batch.id });
    if (stored === undefined) throw new Error("the batch was not stored");
    const ids = operations.map((row) => row.id.toString());
    const taken = await tx.execute(sql`
      update app.operation set state = 'sent', batch_id = ${stored.id.toString()}::bigint, batch_index = place - 1,
        claimed_until = null, retry_at = null, reason = null, reason_data = null,
        tries = case when reason = ${TOKEN_PAUSED} then 0 else tries end,
        published_at = coalesce(published_at, now()), updated_at = now()
      from unnest(${sql.param(ids)}::bigint[]) with ordinality as mine (operation_id, place)
      where id = operation_id and state in ('queued', 'held') and signer = ${signer} and claimed_until > now()`);
    if (taken.rowCount !== operations.length) throw new Error("the claim on some of the operations lapsed");
    return stored.id;
  });
  await crashPoint("after_commit");

  metrics?.batches("sent");
  metrics?.signed({ signer, operations: operations.length, maxFeePerGas: fees.maxFeePerGas });
  logger.info(
    {
      signer,
      batch: id.toString(),
      nonce,
      hash: attempt.hash,
      operations: operations.map((row) => row.id.toString()),
    },
    "batch sent",
  );
  memory.broadcastAt.set(id, head.number);
  await broadcast(context, attempt);
  await crashPoint("after_broadcast");
  return true;
}

/** Signs one transaction of a batch; nothing leaves the process. Throws where the signer's key is not at hand. */
export async function signAttempt(
  { account }: SignerContext,
  { head, ...transaction }: TransactionSerializableEIP1559 & Fees & { head: Head },
): Promise<BatchAttempt> {
  if (account === null) throw new Error("a caretaker signs nothing");
  const raw = await account.signTransaction(transaction);
  return {
    raw,
    hash: keccak256(raw),
    maxFeePerGas: transaction.maxFeePerGas.toString(),
    maxPriorityFeePerGas: transaction.maxPriorityFeePerGas.toString(),
    signedAtBlock: head.number.toString(),
  };
}

/** Hands signed bytes to the node. Its answer decides nothing: receipts do, and the same bytes can go again. */
export async function broadcast(
  { publicClient, logger, signer }: SignerContext,
  { raw, hash }: Pick<BatchAttempt, "raw" | "hash">,
): Promise<void> {
  try {
    await publicClient.sendRawTransaction({ serializedTransaction: raw });
  } catch (error) {
    logger.debug({ signer, hash, error }, "broadcast answered with an error");
  }
}

/**
 * All transactions of one batch, oldest first: where the node lost them and the newest costs more than the signer has,
 * an older one may still be mined.
 */
export async function broadcastAll(context: SignerContext, attempts: readonly BatchAttempt[]): Promise<void> {
  for (const attempt of attempts) await broadcast(context, attempt);
}

/**
 * The lowest nonce that the chain can still take and that no batch of ours stands for; null where the chain knows
 * fewer of our transactions than are decided: it lies, or has lost some.
 */
async function nextNonce({ db, signer }: SignerContext, chainNonce: number): Promise<number | null> {
  const { rows } = await db.execute<{ account_nonce: string; state: string }>(sql`
    select account_nonce::text, state from app.batch where signer = ${signer} and account_nonce >= ${chainNonce}
    order by account_nonce limit ${MAX_KNOWN_NONCES}`);
  if (rows.some(({ state }) => state !== "sent" && state !== "quarantined")) return null;
  let nonce = chainNonce;
  for (const row of rows) {
    if (Number(row.account_nonce) !== nonce) break;
    nonce += 1;
  }
  return nonce;
}
