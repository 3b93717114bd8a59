/** Why an operation failed, whether a retry can help, and the gas that a signer can burn ("Contract wallets"). */
import { and, sql } from "drizzle-orm";
import type { Hex, TransactionReceipt } from "viem";
import { errorNameOf } from "../chain/errors.js";
import { isPaused, isUsed, tokenAbi } from "../chain/token.js";
import type { Transaction } from "../db/client.js";
import { hasOutcomeOnChain, operation } from "../db/schema.js";
import { isOneOf } from "../db/statements.js";
import { createCounts } from "../scheduling.js";
import type { Candidate } from "./choose.js";
import type { Head, SignerContext } from "./context.js";
import type { OperationRow } from "./outbox.js";
import { type SimulationResult, stateOf } from "./transaction.js";

/** Errors that only time resolves. They occur if the keeper's node is ahead of the signer's, or after a reorg. */
export const TOO_EARLY: ReadonlySet<string> = new Set([
  "VotingOpen",
  "TallyNotDue",
  "PayoutHeld",
  "NoDraw",
  "DirectTransferNotRefundable",
  "NotReleasable",
]);
/** Reason of an operation whose payment was used or cancelled before its batch. It counts for no limit on failures. */
export const PAYMENT_USED = "AuthorizationUsed";
/** Hold reason while the stablecoin is paused. */
export const TOKEN_PAUSED = "TokenPaused";
/** Maximum tries of a keeper's operation that is too early (about four minutes); then the keeper enqueues a new one. */
const EARLY_TRIES = 8;
/** Maximum tries of an operation that a reorg removed after it was reported as applied: also about four minutes. */
export const REPORTED_TRIES = 34;
/** Maximum tries of an operation that failed on chain after its simulation: a reorg or foreign transaction interfered. */
export const FAILED_TRIES = 2;

/** Failures that a signer can cause after every simulation: by its signature, its money, or a wallet that burns gas. */
export const SIGNATURE_FAULTS: ReadonlySet<string> = new Set([
  "PaymentFailed",
  "InvalidAuthorization",
  "InvalidActionSignature",
  "InvalidDelegationSignature",
  "Reverted",
  "OutOfGas",
  "UnknownError",
]);

/** Error of a call inside `withDirectTransfer` that failed without a reason. */
const WITHOUT_REASON = "FailedCall";

/** The Solidity error's name, or the relayer's own reason if there is none. */
export function failureReason(data: Hex, { outOfGas = false } = {}): string {
  const name = data === "0x" ? WITHOUT_REASON : (errorNameOf(data) ?? "UnknownError");
  if (name !== WITHOUT_REASON) return name;
  return outOfGas ? "OutOfGas" : "Reverted";
}

/**
 * Whether the cause of a failure can go away without the operation: it is too early, or an operation that it depends on is
 * pending again, as after a reorg, which can have removed it after its caller got a success response.
 */
export const canPass = (
  reason: string,
  { tries, response, fromKeeper }: Pick<OperationRow, "tries" | "response"> & { fromKeeper: boolean },
): boolean =>
  (fromKeeper && TOO_EARLY.has(reason) && tries < EARLY_TRIES) ||
  (response !== null && tries < REPORTED_TRIES);

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 5 * 60_000;
const LAST_REPORTED_RETRY_MS = 8_000;

/** Milliseconds until the next try. Operations reported as applied retry sooner, because others wait for them. */
export function retryDelay(tries: number, { reported = false } = {}): number {
  return Math.min(
    FIRST_RETRY_MS * 2 ** Math.min(tries, 20),
    reported ? LAST_REPORTED_RETRY_MS : LAST_RETRY_MS,
  );
}

const MAX_SIGNED_QUOTA = 32;
/** The token refused a payment: to an escrow, or to the registry, which passes the token's error on. */
const REFUSED_PAYMENT: ReadonlySet<string> = new Set(["PaymentFailed", "UnknownError"]);
/** Blocks between a simulation and its batch in which someone else can use a payment. A later batch finds it expired. */
const USED_BLOCKS = 256n;

/** Signed operations that the next batch can carry of each caller that has several. */
export async function readSignedQuotas(
  tx: Transaction,
  candidates: readonly Candidate[],
): Promise<Map<string, number>> {
  const counts = createCounts();
  for (const { caller, signed } of candidates) if (signed && caller !== null) counts.add(caller, 1);
  const crowded = counts.at(2);
  if (crowded.length === 0) return new Map();
  const { rows } = await tx.execute<{ caller: string; quota: number }>(sql`
    select caller, least(${MAX_SIGNED_QUOTA}, 1 + (
      select count(*) filter (where not has_failed)::int from (
        select bool_or(state = 'rejected') over (order by id desc) as has_failed from app.operation
        where operation.caller = asked.caller and signed and ${hasOutcomeOnChain}
        order by id desc limit ${MAX_SIGNED_QUOTA}) newest)) as quota
    from unnest(${sql.param(crowded)}::text[]) as asked (caller)`);
  return new Map(rows.map(({ caller, quota }) => [caller, quota]));
}

/** Ids of the operations whose payment the simulation on this block refused because it was used or cancelled before. */
export async function usedPayments(
  { publicClient, deployment }: SignerContext,
  operations: readonly OperationRow[],
  results: readonly SimulationResult[],
  head: Head,
): Promise<Set<bigint>> {
  const used = operations.map(async ({ id, asset, payer, nonce }, index) => {
    const result = results[index];
    if (payer === null || nonce === null || result === undefined || result.success) return [];
    if (!REFUSED_PAYMENT.has(failureReason(result.data, result))) return [];
    const token = asset ?? deployment.asset.address;
    const payment = { from: payer, nonce };
    return (await isUsed(publicClient, token, payment, stateOf(head))) ? [id] : [];
  });
  return new Set((await Promise.all(used)).flat());
}

/** Where the batch's transaction was mined. */
type TransactionRef = Pick<TransactionReceipt, "blockHash" | "blockNumber" | "transactionIndex">;

/**
 * Maps each failed operation whose caller's signature or money is at fault to that caller. Excused if the payment had
 * expired, someone else used it first, the token refuses all transfers, or a reorg put the operation before its escrow's
 * creation.
 */
export async function signersAtFault(
  context: SignerContext,
  failures: ReadonlyMap<bigint, Hex>,
  transaction: TransactionRef,
): Promise<Map<bigint, string>> {
  const reasons = new Map([...failures].map(([id, data]) => [id, failureReason(data)]));
  const ids = [...reasons].flatMap(([id, reason]) => (SIGNATURE_FAULTS.has(reason) ? [id] : []));
  if (ids.length === 0) return new Map();
  const rows = await context.db
    .select()
    .from(operation)
    .where(and(isOneOf(operation.id, ids), operation.signed));
  const judged = await Promise.all(
    rows.map(async (row): Promise<[bigint, string][]> => {
      const { id, caller } = row;
      const reason = reasons.get(id) ?? "";
      const isExcused =
        (REFUSED_PAYMENT.has(reason) && (await isBeyondPayer(context, row, transaction))) ||
        (reason === "Reverted" && (await isBeforeTarget(context, row, transaction)));
      return caller === null || isExcused ? [] : [[id, caller]];
    }),
  );
  return new Map(judged.flat());
}

/** Whether there was no contract to call yet. */
const isBeforeTarget = (
  { publicClient }: SignerContext,
  { target }: OperationRow,
  { blockNumber }: TransactionRef,
): Promise<boolean> =>
  publicClient.getCode({ address: target, blockNumber: blockNumber - 1n }).then(
    (code) => code === undefined,
    () => false,
  );

/** A node that cannot say excuses nothing: its answer must not keep a receipt from being recorded. */
async function isBeyondPayer(
  { publicClient, deployment }: SignerContext,
  { asset, payer, nonce, notAfter }: OperationRow,
  { blockHash, blockNumber, transactionIndex }: TransactionRef,
): Promise<boolean> {
  const token = asset ?? deployment.asset.address;
  const isExpired = async () =>
    notAfter !== null && (await publicClient.getBlock({ blockHash })).timestamp > BigInt(notAfter);
  const isUsed = async () => {
    if (payer === null || nonce === null) return false;
    const uses = await publicClient.getContractEvents({
      address: token,
      abi: tokenAbi,
      eventName: "AuthorizationUsed",
      args: { authorizer: payer, nonce },
      fromBlock: blockNumber > USED_BLOCKS ? blockNumber - USED_BLOCKS : 0n,
      toBlock: blockNumber,
    });
    // The batch did not fail for a use behind it, by which its payer could excuse itself.
    return uses.some((use) => use.blockNumber < blockNumber || use.transactionIndex < transactionIndex);
  };
  const checks = [isExpired, isUsed, () => isPaused(publicClient, token, stateOf({ hash: blockHash }))];
  const results = await Promise.all(checks.map((check) => check().catch(() => false)));
  return results.includes(true);
}

/** Rejects what else a caller has signed and no one has broadcast ("Contract wallets"). Returns the ids. */
export async function rejectWaiting(tx: Transaction, caller: string): Promise<bigint[]> {
  const { rows } = await tx.execute<{ id: string }>(sql`
    update app.operation set state = 'rejected', reason = 'SignerFailed', data = '0x', retry_at = null, updated_at = now()
    where state in ('queued', 'held') and caller = ${caller} and signed and published_at is null
      and kind not in ('delegate', 'refund-direct-transfer')
      and (leased_until is null or leased_until < now())
    returning id::text`);
  return rows.map(({ id }) => BigInt(id));
}
