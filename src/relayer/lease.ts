/** Chooses the next batch among the queued operations and leases it; releases, holds or rejects those that are not sent. */
import type { Address } from "@working-contracts/protocol/types";
import { and, eq, sql } from "drizzle-orm";
import { lock, type Transaction } from "../db/client.js";
import { operation } from "../db/schema.js";
import { isOneOf, prepare } from "../db/statements.js";
import { type BusyOperation, type Candidate, chooseOperations } from "./choose.js";
import { fenced, type Head, raiseAlarm, type SignerContext } from "./context.js";
import { readSignedQuotas, retryDelay, TOKEN_PAUSED } from "./failures.js";
import { OPERATION_DONE, type OperationRow } from "./outbox.js";
import { type BlockRef, batchGasLimit } from "./transaction.js";

/** A lease lapses after this time; then another signer can lease the operation. */
const LEASE_SECONDS = 30;
/** Maximum rows per choice; the queue's own limit is about the same. */
const MAX_CANDIDATES = 5000;
const MAX_EXPIRED = 500;
/** Ids per notification: Postgres limits a payload to 8,000 bytes. */
const NOTIFY_IDS = 350;
/** An operation held this many times raises an alarm. */
const ALARM_TRIES = 5;

const readOpenAndWaiting = prepare<{ open: boolean; waiting: boolean }>(
  "relayer_work",
  sql`select exists (
    select 1 from app.operation where state in ('queued', 'held') and (retry_at is null or retry_at <= now())) as waiting,
    exists (
    select 1 from app.batch
    where signer = ${sql.placeholder("signer")} and state in ('sent', 'mined', 'quarantined')) as open`,
);

/** Whether this signer has batches that are not final, and whether any operation is waiting that it could send. */
export async function readWork({
  db,
  signer,
}: SignerContext): Promise<{ isOpen: boolean; isWaiting: boolean }> {
  const [row] = await readOpenAndWaiting(db, { signer });
  return { isOpen: row?.open === true, isWaiting: row?.waiting === true };
}

export interface Lease {
  /** In order of execution. */
  operations: OperationRow[];
  /**
   * Blocks these operations build on: the newest block with any signer's batch, and the blocks with recent operations
   * on the same escrows or for the same callers. A simulation on an older state or another branch would be wrong.
   */
  standsOn: BlockRef[];
}

/** Rejects expired operations by the chain's clock, but none that was published: only the chain knows its fate. */
export async function rejectExpired(context: SignerContext, head: Head): Promise<void> {
  const { signer, logger, metrics } = context;
  const ids = await fenced(context, async (tx) => {
    const { rows } = await tx.execute<{ id: string }>(sql`
      update app.operation set state = 'rejected', reason = 'Expired', data = '0x', retry_at = null, updated_at = now()
      where id in (
        select id from app.operation where state in ('queued', 'held') and not_after < ${head.timestamp}
          and published_at is null and (leased_until is null or leased_until < now() or signer = ${signer})
        order by id limit ${MAX_EXPIRED} for update skip locked)
      returning id::text`);
    const ended = rows.map(({ id }) => id);
    await notifyDone(tx, ended.map(BigInt));
    return ended;
  });
  if (ids.length === 0) return;
  metrics?.operations("rejected", ids.length);
  logger.info({ operations: ids }, "operations expired");
}

const readCandidates = prepare<Omit<Candidate, "id"> & { id: string }>(
  "relayer_candidates",
  sql`
    select id::text, kind, escrow, caller, signed, gas_limit as "gasLimit", published_at is not null as published,
      octet_length(data) / 2 - 1 as "dataLength", not_after::float8 as "notAfter",
      ${sql.placeholder("headTime")}::float8 - extract(epoch from now() - created_at)::float8 as "createdAt",
      case when reason = ${TOKEN_PAUSED} then 0 else tries end as tries
    from app.operation
    where state in ('queued', 'held') and (retry_at is null or retry_at <= now())
      and (leased_until is null or leased_until < now() or signer = ${sql.placeholder("signer")})
    order by operation.id limit ${MAX_CANDIDATES}`,
);

/** Leases the next batch. Tries that failed because the token was paused do not count against an operation. */
export async function leaseOperations(context: SignerContext, head: Head): Promise<Lease> {
  const { signer, options } = context;
  const choose = async (tx: Transaction) => {
    // Two signers must not lease operations that exclude each other.
    await lock(tx, "choice of operations");
    const candidates = await readCandidates(tx, { signer, headTime: head.timestamp });
    const none = { rows: [], standsOn: [] };
    if (candidates.length === 0) return none;
    const waiting = candidates.map((row): Candidate => ({ ...row, id: BigInt(row.id) }));
    const surroundings = await readSurroundings(tx, { signer });
    const ids = chooseOperations({
      candidates: waiting,
      signedQuotas: await readSignedQuotas(tx, waiting),
      busy: surroundings.filter((row) => row.role === "busy"),
      reportedEscrows: new Set(surroundings.flatMap((row) => (row.role === "reported" ? [row.escrow] : []))),
      batchGasLimit: batchGasLimit(head),
      maxOperations: options.maxBatchSize,
    });
    if (ids.length === 0) return none;
    const leased = await tx
      .update(operation)
      .set({ signer, leasedUntil: sql`now() + make_interval(secs => ${LEASE_SECONDS})` })
      .where(isOneOf(operation.id, ids))
      .returning();
    return { rows: leased, standsOn: blocksUnder(leased, surroundings) };
  };
  const { rows, standsOn } = await fenced(context, choose);
  return { operations: rows.sort((a, b) => (a.id < b.id ? -1 : 1)), standsOn };
}

/** Inputs to a choice other than the candidates. */
type Surrounding =
  | (BusyOperation & { role: "busy" })
  /** An operation on this escrow was reported as applied and is waiting to be applied again. */
  | { role: "reported"; escrow: string }
  /** Block of a recent operation on the escrow, or for the caller, of a waiting operation. */
  | { role: "block"; escrow: Address | null; caller: Address | null; number: string; hash: string }
  /** Block of the newest batch of any signer. */
  | { role: "newest"; number: string; hash: string };

/**
 * One statement, so that all rows come from one snapshot: a reorg moves operations from mined to sent, and separate
 * queries could see one in neither state. Sent and mined operations are found by their batches: under load, an index on
 * their state is full of dead rows. An operation that failed on chain keeps its own caller waiting until the failure is
 * deep, but not others on its escrow: if a reorg then applies it, one of theirs fails instead. A delegation that waits
 * for its retry blocks the actions that need it.
 */
const readSurroundings = prepare<Surrounding>(
  "relayer_surroundings",
  sql`
    with open as materialized (
      select kind, escrow, caller, state, block_number, block_hash, (
          select state from app.batch where id = batch_id) as batch_state
      from app.operation
      where batch_id = any(array(select id from app.batch where state in ('sent', 'mined', 'quarantined')))
        and state in ('sent', 'mined'))
    select 'busy' as role, kind, case when batch_state <> 'mined' then escrow end as escrow, caller, null as number,
      null as hash
    from open where state = 'sent'
    union all
    select 'busy', kind, escrow, caller, null, null from app.operation
    where state in ('queued', 'held') and signer <> ${sql.placeholder("signer")} and leased_until > now()
    union all
    select 'busy', kind, escrow, caller, null, null from app.operation
    where state = 'held' and retry_at > now() and kind in ('delegate', 'revoke-delegation')
    union all
    select 'reported', kind, escrow, caller, null, null from app.operation
    where state in ('queued', 'held') and response is not null and escrow is not null
    union all
    select 'block', kind, escrow, caller, block_number::text, block_hash from open
    where state = 'mined' and block_hash is not null and (
      escrow in (select escrow from app.operation where state in ('queued', 'held'))
      or caller in (select caller from app.operation where state in ('queued', 'held')))
    union all
    (select 'newest', null, null, null, block_number::text, block_hash from app.batch
      where state in ('mined', 'final') and block_hash is not null order by batch.block_number desc limit 1)`,
);

function blocksUnder(leased: readonly OperationRow[], surroundings: readonly Surrounding[]): BlockRef[] {
  const concerned = new Set(leased.flatMap(({ escrow, caller }) => [escrow, caller]));
  concerned.delete(null);
  const blocks = new Map<string, BlockRef>();
  for (const row of surroundings) {
    const counts =
      row.role === "newest" ||
      (row.role === "block" && (concerned.has(row.escrow) || concerned.has(row.caller)));
    if (counts) blocks.set(row.hash, { blockNumber: BigInt(row.number), blockHash: row.hash });
  }
  return [...blocks.values()];
}

/** Leased operations that are not in the next batch. */
export interface Unsent {
  failed: { row: OperationRow; state: "rejected" | "held"; reason: string; data: string }[];
  /** Returned to the queue unchanged. */
  released: OperationRow[];
}

const storeFailed = prepare(
  "operations_failed",
  sql`
    update app.operation o set state = failed.state, reason = failed.reason, reason_data = failed.data,
      data = case when failed.state = 'rejected' and o.published_at is null then '0x' else o.data end,
      tries = o.tries + (failed.state = 'held')::int, retry_at = now() + make_interval(secs => failed.wait),
      leased_until = null, updated_at = now()
    from json_to_recordset(${sql.placeholder("failed")}::json) as failed (
      id bigint, state text, reason text, data text, wait float8)
    where o.id = failed.id and o.state in ('queued', 'held') and o.signer = ${sql.placeholder("signer")}`,
);

/** Stores these outcomes. Skips an operation if our lease lapsed and another signer has leased it. */
export async function storeUnsent(context: SignerContext, { failed, released }: Unsent): Promise<void> {
  const { signer } = context;
  if (failed.length + released.length === 0) return;
  const stored = failed.map(({ row: { id, tries, response }, ...rest }) => {
    const wait = rest.state === "held" ? retryDelay(tries, { reported: response !== null }) / 1000 : null;
    return { id: id.toString(), wait, ...rest };
  });
  await fenced(context, async (tx) => {
    if (failed.length > 0) await storeFailed(tx, { signer, failed: JSON.stringify(stored) });
    if (released.length > 0) {
      const ids = released.map(({ id }) => id);
      await tx
        .update(operation)
        .set({ leasedUntil: null })
        .where(and(eq(operation.signer, signer), isOneOf(operation.id, ids)));
    }
    await notifyDone(
      tx,
      failed.flatMap(({ row, state }) => (state === "rejected" ? [row.id] : [])),
    );
  });
  for (const one of failed) report(context, one);
}

function report(context: SignerContext, { row, state, reason }: Unsent["failed"][number]): void {
  const { logger, metrics } = context;
  metrics?.operations(state, 1);
  const { id, kind, escrow } = row;
  const tries = row.tries + 1;
  const facts = { operation: id.toString(), kind, escrow, reason, tries };
  if (state === "rejected") logger.info(facts, "operation rejected");
  else if (tries >= ALARM_TRIES) raiseAlarm(context, "operation_failing", facts);
  else logger.warn(facts, "operation held");
}

/** Wakes the waiters of these operations when the surrounding transaction commits. */
export async function notifyDone(tx: Transaction, ids: readonly bigint[]): Promise<void> {
  for (let start = 0; start < ids.length; start += NOTIFY_IDS) {
    const payload = ids.slice(start, start + NOTIFY_IDS).join(",");
    await tx.execute(sql`select pg_notify(${OPERATION_DONE}, ${payload})`);
  }
}
