/** Chooses the next batch among the queued operations and claims it; releases, holds or rejects those that are not sent. */
import { and, eq, inArray, sql } from "drizzle-orm";
import { ADVISORY_LOCKS, type Transaction } from "../db/client.js";
import { operation } from "../db/schema.js";
import { fenced, type Head, raiseAlarm, type SignerContext } from "./context.js";
import { readAllowances, retryDelay, TOKEN_PAUSED } from "./failures.js";
import type { OperationKind } from "./operations.js";
import { OPERATION_DONE, type OperationRow } from "./outbox.js";
import { gasBudget, MAX_BATCH_BYTES, operationBytes, operationGas } from "./transaction.js";

/** A claim lapses after this time; then another signer can claim the operation. */
const CLAIM_SECONDS = 30;
/** Maximum rows per choice; the queue's own limit is about the same. */
const MAX_CANDIDATES = 5000;
const MAX_EXPIRED = 500;
/** Ids per notification: Postgres limits a payload to 8,000 bytes. */
const NOTIFY_IDS = 350;
/** An operation held this many times raises an alarm. */
const ALARM_TRIES = 5;

const WAITING = sql`exists (
  select 1 from app.operation where state in ('queued', 'held') and (retry_at is null or retry_at <= now()))`;

/** Returns whether any operation is waiting that this signer could send. */
export async function hasWaiting({ db }: SignerContext): Promise<boolean> {
  const { rows } = await db.execute<{ waiting: boolean }>(sql`select ${WAITING} as waiting`);
  return rows[0]?.waiting === true;
}

/** Like {@link hasWaiting}; also returns whether this signer has batches that are not final. */
export async function readWork({
  db,
  signer,
}: SignerContext): Promise<{ isOpen: boolean; isWaiting: boolean }> {
  const { rows } = await db.execute<{ open: boolean; waiting: boolean }>(sql`
    select ${WAITING} as waiting, exists (
      select 1 from app.batch where signer = ${signer} and state in ('sent', 'mined', 'quarantined')) as open`);
  return { isOpen: rows[0]?.open === true, isWaiting: rows[0]?.waiting === true };
}

export interface Claim {
  /** In order of execution. */
  operations: OperationRow[];
  /**
   * Blocks these operations build on: the newest block with any signer's batch, and the blocks with recent operations
   * on the same escrows or for the same callers. A simulation on an older state or another branch would be wrong.
   */
  standsOn: { number: bigint; hash: string }[];
}

/**
 * Rejects unsent operations as `Expired` once their deadline has passed on the chain's clock. A published operation is
 * kept, because only the chain can tell whether it was applied.
 */
export async function endExpired(context: SignerContext, head: Head): Promise<void> {
  const { signer, logger, metrics } = context;
  const ids = await fenced(context, async (tx) => {
    const { rows } = await tx.execute<{ id: string }>(sql`
      update app.operation set state = 'rejected', reason = 'Expired', data = '0x', retry_at = null, updated_at = now()
      where id in (
        select id from app.operation where state in ('queued', 'held') and not_after < ${head.timestamp}
          and published_at is null and (claimed_until is null or claimed_until < now() or signer = ${signer})
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

/** Claims the next batch. Tries that failed because the token was paused do not count against an operation. */
export async function claimOperations(context: SignerContext, head: Head): Promise<Claim> {
  const { signer, options } = context;
  const { rows, standsOn } = await fenced(context, async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.choice})`);
    const candidates = await tx.execute<Omit<Candidate, "id"> & { id: string }>(sql`
      select id::text, kind, escrow, caller, signed, gas_limit as "gasLimit", published_at is not null as published,
        octet_length(data) / 2 - 1 as "dataLength", not_after::float8 as "notAfter",
        ${head.timestamp} - extract(epoch from now() - created_at)::float8 as "createdAt",
        case when reason = ${TOKEN_PAUSED} then 0 else tries end as tries
      from app.operation
      where state in ('queued', 'held') and (retry_at is null or retry_at <= now())
        and (claimed_until is null or claimed_until < now() or signer = ${signer})
      order by operation.id limit ${MAX_CANDIDATES}`);
    const none = { rows: [], standsOn: [] };
    if (candidates.rows.length === 0) return none;
    const waiting = candidates.rows.map((row): Candidate => ({ ...row, id: BigInt(row.id) }));
    const surroundings = await readSurroundings(tx, signer);
    const ids = chooseOperations({
      candidates: waiting,
      allowances: await readAllowances(tx, waiting),
      busy: surroundings.filter((row) => row.role === "busy"),
      promised: new Set(surroundings.flatMap((row) => (row.role === "promised" ? [row.escrow] : []))),
      gasBudget: gasBudget(head),
      maxOperations: options.maxBatchSize,
    });
    if (ids.length === 0) return none;
    const claimed = await tx
      .update(operation)
      .set({ signer, claimedUntil: sql`now() + make_interval(secs => ${CLAIM_SECONDS})` })
      .where(inArray(operation.id, ids))
      .returning();
    return { rows: claimed, standsOn: blocksUnder(claimed, surroundings) };
  });
  return { operations: rows.sort((a, b) => (a.id < b.id ? -1 : 1)), standsOn };
}

/** Inputs to a choice other than the candidates. */
type Surrounding =
  | (BusyOperation & { role: "busy" })
  /** An operation on this escrow was reported as applied and is waiting to be applied again. */
  | { role: "promised"; escrow: string }
  /** Block of a recent operation on the escrow, or for the caller, of a waiting operation. */
  | { role: "block"; escrow: string | null; caller: string | null; number: string; hash: string }
  /** Block of the newest batch of any signer. */
  | { role: "newest"; number: string; hash: string };

/**
 * One statement, so that all rows come from one snapshot. A reorg moves an operation from mined to sent; separate
 * queries could see it in neither state and judge the operations behind it as if it did not exist.
 */
async function readSurroundings(tx: Transaction, signer: string): Promise<Surrounding[]> {
  // A delegation that waits for its retry blocks the actions that need it.
  const { rows } = await tx.execute<Surrounding & Record<string, unknown>>(sql`
    select 'busy' as role, kind, escrow, caller, null as number, null as hash from app.operation
    where state = 'sent'
    union all
    select 'busy', kind, escrow, caller, null, null from app.operation
    where state in ('queued', 'held') and signer <> ${signer} and claimed_until > now()
    union all
    select 'busy', kind, escrow, caller, null, null from app.operation
    where state = 'held' and retry_at > now() and kind in ('delegate', 'revoke-delegation')
    union all
    select 'promised', kind, escrow, caller, null, null from app.operation
    where state in ('queued', 'held') and response is not null and escrow is not null
    union all
    select 'block', kind, escrow, caller, block_number::text, block_hash from app.operation
    where state = 'mined' and block_hash is not null and (
      escrow in (select escrow from app.operation where state in ('queued', 'held'))
      or caller in (select caller from app.operation where state in ('queued', 'held')))
    union all
    (select 'newest', null, null, null, block_number::text, block_hash from app.batch
      where state in ('mined', 'final') and block_hash is not null order by batch.block_number desc limit 1)`);
  return rows;
}

function blocksUnder(
  claimed: readonly OperationRow[],
  surroundings: readonly Surrounding[],
): Claim["standsOn"] {
  const concerned = new Set(claimed.flatMap(({ escrow, caller }) => [escrow, caller]));
  concerned.delete(null);
  const blocks = new Map<string, Claim["standsOn"][number]>();
  for (const row of surroundings) {
    const counts =
      row.role === "newest" ||
      (row.role === "block" && (concerned.has(row.escrow) || concerned.has(row.caller)));
    if (counts) blocks.set(row.hash, { number: BigInt(row.number), hash: row.hash });
  }
  return [...blocks.values()];
}

/** Claimed operations that are not in the next batch, by outcome. */
export interface Unsent {
  rejected: { row: OperationRow; reason: string; data: string }[];
  held: { row: OperationRow; reason: string; data: string }[];
  /** Returned to the queue unchanged. */
  released: OperationRow[];
}

/** Stores these outcomes. Skips an operation if our claim lapsed and another signer has claimed it. */
export async function storeUnsent(context: SignerContext, unsent: Unsent): Promise<void> {
  const { rejected, held, released } = unsent;
  const { signer } = context;
  if (rejected.length + held.length + released.length === 0) return;
  await fenced(context, async (tx) => {
    for (const { row, reason, data } of rejected) {
      await tx.execute(sql`
        update app.operation set state = 'rejected', reason = ${reason}, reason_data = ${data}, retry_at = null,
          data = case when published_at is null then '0x' else operation.data end, claimed_until = null, updated_at = now()
        where id = ${row.id.toString()}::bigint and state in ('queued', 'held') and signer = ${signer}`);
    }
    for (const { row, reason, data } of held) {
      const wait = retryDelay(row.tries, { answered: row.response !== null }) / 1000;
      await tx.execute(sql`
        update app.operation set state = 'held', reason = ${reason}, reason_data = ${data}, tries = tries + 1,
          retry_at = now() + make_interval(secs => ${wait}), claimed_until = null,
          updated_at = now()
        where id = ${row.id.toString()}::bigint and state in ('queued', 'held') and signer = ${signer}`);
    }
    if (released.length > 0) {
      await tx
        .update(operation)
        .set({ claimedUntil: null })
        .where(
          and(
            eq(operation.signer, signer),
            inArray(
              operation.id,
              released.map(({ id }) => id),
            ),
          ),
        );
    }
    await notifyDone(
      tx,
      rejected.map(({ row }) => row.id),
    );
  });
  report(context, unsent);
}

function report(context: SignerContext, { rejected, held }: Unsent): void {
  const { logger, metrics } = context;
  if (rejected.length > 0) metrics?.operations("rejected", rejected.length);
  if (held.length > 0) metrics?.operations("held", held.length);
  for (const { row, reason } of rejected) {
    logger.info(
      { operation: row.id.toString(), kind: row.kind, escrow: row.escrow, reason },
      "operation rejected",
    );
  }
  for (const { row, reason } of held) {
    const facts = {
      operation: row.id.toString(),
      kind: row.kind,
      escrow: row.escrow,
      reason,
      tries: row.tries + 1,
    };
    if (row.tries + 1 >= ALARM_TRIES) raiseAlarm(context, "operation_failing", facts);
    else logger.warn(facts, "operation held");
  }
}

/** Wakes the waiters of these operations when the surrounding transaction commits. */
export async function notifyDone(
  tx: Pick<SignerContext["db"], "execute">,
  ids: readonly bigint[],
): Promise<void> {
  for (let start = 0; start < ids.length; start += NOTIFY_IDS) {
    const payload = ids.slice(start, start + NOTIFY_IDS).join(",");
    await tx.execute(sql`select pg_notify(${OPERATION_DONE}, ${payload})`);
  }
}

export interface Candidate {
  id: bigint;
  kind: OperationKind;
  escrow: string | null;
  caller: string | null;
  gasLimit: number;
  dataLength: number;
  notAfter: number | null;
  /** Seconds on the chain's clock, like `notAfter`. */
  createdAt: number;
  tries: number;
  /** Whether it carries its caller's signature, which a contract wallet judges by its own code. */
  signed: boolean;
  /** Whether it was ever signed for broadcast, in any batch. */
  published: boolean;
}

/** An operation whose result is not known yet. */
export interface BusyOperation {
  kind: OperationKind;
  escrow: string | null;
  caller: string | null;
}

/**
 * At most one of these at a time per escrow: they exclude each other, or decide whether the next one is possible. Only a
 * settlement can share the batch of the operation that ends its contract.
 */
const EXCLUSIVE: ReadonlySet<OperationKind> = new Set([
  "create",
  "accept",
  "decline",
  "cancel",
  "deliver",
  "withdraw",
  "approve",
  "dispute",
  "draw",
  "tally",
  "settle",
]);

/** They end a contract, so that a settlement can follow in the same batch. */
const ENDING: ReadonlySet<OperationKind> = new Set(["approve", "cancel", "decline", "withdraw"]);

/** Seconds until an operation counts as urgent even without a deadline, so that nothing waits forever. */
const PATIENCE = 120;

/** After this many tries an operation is sent alone, so that it cannot make another batch fail. */
const SUSPECT_TRIES = 3;

/**
 * Chooses by urgency and returns the ids in ascending order, which is the order of execution: an agent's delegation
 * runs before the action that needs it. On an escrow, operations that failed before come after rivals that did not.
 * Otherwise a contract wallet whose signature is valid only in simulations could block its rivals until their deadline.
 */
export function chooseOperations({
  candidates,
  busy,
  promised = new Set(),
  allowances = new Map(),
  gasBudget,
  maxOperations,
}: {
  candidates: readonly Candidate[];
  busy: readonly BusyOperation[];
  /**
   * Escrows with an operation that was reported as applied and is waiting to be applied again. Unpublished operations
   * on the same escrow wait behind it, because they can be its rivals.
   */
  promised?: ReadonlySet<string>;
  /** Maximum signed operations per batch, of each caller that has several. */
  allowances?: ReadonlyMap<string, number>;
  gasBudget: number;
  maxOperations: number;
}): bigint[] {
  const busyEscrows = new Map<string, "shared" | "exclusive">();
  const busyCallers = new Set<string>();
  for (const { kind, escrow, caller } of busy) {
    if (escrow !== null && busyEscrows.get(escrow) !== "exclusive") {
      busyEscrows.set(escrow, EXCLUSIVE.has(kind) ? "exclusive" : "shared");
    }
    if (caller !== null) busyCallers.add(caller);
  }

  const urgent = byUrgency(candidates);
  const untried = escrowsWithUntried(urgent);

  const chosen: Candidate[] = [];
  const taken = new Map<string, OperationKind>();
  /** Escrows with an exclusive operation that is not chosen. A settlement could depend on it. */
  const passedOver = new Set<string>();
  const closedCallers = new Set<string>();
  /**
   * Callers with an operation that waits behind a promised one. Their operations that were sent before must not wait
   * for it: the promised one can be one of them, or depend on one.
   */
  const waitingCallers = new Set<string>();
  /** Escrows that take no more shared operations until a waiting exclusive operation of an agent is sent. */
  const drainedEscrows = new Set<string>();
  const left = new Map(allowances);
  let gas = 0;
  let bytes = 0;
  for (const candidate of urgent) {
    const { escrow, caller } = candidate;
    const exclusive = EXCLUSIVE.has(candidate.kind);
    const alone = candidate.tries >= SUSPECT_TRIES;
    const needed = operationGas(candidate);
    const onEscrow = escrow === null ? undefined : busyEscrows.get(escrow);
    const isPromised = escrow !== null && promised.has(escrow);
    const isBehindPromise =
      !candidate.published && (isPromised || (caller !== null && waitingCallers.has(caller)));
    const size = operationBytes(candidate);
    const blocked =
      onEscrow === "exclusive" ||
      (exclusive && onEscrow === "shared") ||
      (exclusive && escrow !== null && !canFollow(candidate.kind, taken.get(escrow))) ||
      (candidate.kind === "settle" && passedOver.has(escrow ?? "")) ||
      (!exclusive && escrow !== null && drainedEscrows.has(escrow)) ||
      isBehindPromise ||
      (exclusive && candidate.tries > 0 && untried.has(escrow) && !isPromised) ||
      (caller !== null && (busyCallers.has(caller) || closedCallers.has(caller))) ||
      (candidate.signed && left.get(caller ?? "") === 0) ||
      (alone && chosen.length > 0) ||
      chosen.length >= maxOperations ||
      (chosen.length > 0 && (gas + needed > gasBudget || bytes + size > MAX_BATCH_BYTES));
    if (blocked) {
      // The agent's later operations can depend on this one.
      if (caller !== null) (isBehindPromise ? waitingCallers : closedCallers).add(caller);
      if (exclusive && escrow !== null) {
        passedOver.add(escrow);
        if (caller !== null && onEscrow === "shared") drainedEscrows.add(escrow);
      }
      continue;
    }
    chosen.push(candidate);
    gas += needed;
    bytes += size;
    if (exclusive && escrow !== null) taken.set(escrow, candidate.kind);
    const allowance = candidate.signed ? left.get(caller ?? "") : undefined;
    if (allowance !== undefined) left.set(caller ?? "", allowance - 1);
    if (alone) break;
  }
  return chosen.map(({ id }) => id).sort(compareIds);
}

/** Whether an exclusive operation can be in a batch behind `before`, the last one chosen on its escrow. */
function canFollow(kind: OperationKind, before: OperationKind | undefined): boolean {
  return before === undefined || (kind === "settle" && ENDING.has(before));
}

/**
 * Escrows with a waiting operation that has not failed and is its agent's first. Only the first counts: one behind a
 * failed operation of the same agent would wait for it, and the failed one would wait in turn. So would a settlement,
 * which waits for the more urgent operations on its escrow.
 */
function escrowsWithUntried(urgent: readonly Candidate[]): Set<string | null> {
  const escrows = new Set<string | null>();
  const callers = new Set<string>();
  for (const { kind, escrow, caller, tries } of urgent) {
    const isFirst = caller === null || !callers.has(caller);
    if (isFirst && tries === 0 && EXCLUSIVE.has(kind) && kind !== "settle") escrows.add(escrow);
    if (caller !== null) callers.add(caller);
  }
  return escrows;
}

/** Soonest deadline first. An agent's earlier operations are at least as urgent as its later ones. */
function byUrgency(candidates: readonly Candidate[]): Candidate[] {
  const deadlines = new Map<bigint, number>();
  const soonestOf = new Map<string, number>();
  for (const candidate of [...candidates].sort((a, b) => compareIds(b.id, a.id))) {
    const { id, caller, notAfter, createdAt } = candidate;
    let deadline = Math.min(notAfter ?? Number.POSITIVE_INFINITY, createdAt + PATIENCE);
    if (caller !== null) {
      deadline = Math.min(deadline, soonestOf.get(caller) ?? Number.POSITIVE_INFINITY);
      soonestOf.set(caller, deadline);
    }
    deadlines.set(id, deadline);
  }
  const deadlineOf = ({ id }: Candidate) => deadlines.get(id) ?? 0;
  return [...candidates].sort((a, b) => deadlineOf(a) - deadlineOf(b) || compareIds(a.id, b.id));
}

function compareIds(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
