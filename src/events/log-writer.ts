/**
 * The only writer of the event log (docs/decisions.md, "Events"). Any number of processes can run one: a round is one
 * transaction on one snapshot, by one writer at a time.
 */
import { isDeepStrictEqual } from "node:util";
import { TIMEOUT_TYPES } from "@working-contracts/protocol/events";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, desc, eq, getTableColumns, gt, inArray, isNotNull, isNull, sql } from "drizzle-orm";
import type { BaseLogger } from "pino";
import type { PublicClient } from "viem";
import { isCanonical } from "../chain/clients.js";
import { type Database, type Executor, hasSqlState, SQLSTATE, type Transaction } from "../db/client.js";
import { escrowEvent, INDEX_CHANGED, type IndexProgress, indexProgress } from "../db/onchain.js";
import { event, eventLog, expiredAttempt, terms } from "../db/schema.js";
import { insertRows, isOneOf, prepare } from "../db/statements.js";
import { createLoop, type Loop, type Wakers } from "../scheduling.js";
import { draftsOf, readChainEvents } from "./chain-events.js";
import { armDeadlines, CONTRADICTS_TIMEOUT, PHASE_TYPES, takeDueDeadlines } from "./deadlines.js";
import { EVENTS_APPENDED, type EventDraft, type EventRow } from "./log.js";

/** In case a notification is lost. */
const INTERVAL_MS = 1000;
const MAX_BACKOFF_MS = 10_000;
/** Postgres channel; a trigger notifies it of each staged event. */
const EVENT_STAGED = "event_staged";
/** Events of each kind per transaction. */
const BATCH = 200;
/** Log events checked per round for a reorg. If more are undone, the next round continues. */
const TAIL = 200;
/** Longest time that a process which stalls during a round can block the others. */
const ROUND_IDLE_TIMEOUT = "10s";

interface LogWriterDeps {
  db: Database;
  publicClient: Pick<PublicClient, "getBlock">;
  logger: Pick<BaseLogger, "info" | "warn">;
}

/** The loop that writes the event log. Any number of processes can run it; a failed round is retried. */
export function createLogWriter(deps: LogWriterDeps & { notifications: Wakers["notifications"] }): Loop {
  let isInitialized = false;
  return createLoop({
    name: "events",
    logger: deps.logger,
    intervalMs: INTERVAL_MS,
    wakers: { notifications: deps.notifications, channels: [EVENT_STAGED, INDEX_CHANGED] },
    maxBackoffMs: MAX_BACKOFF_MS,
    async round() {
      if (!isInitialized) {
        await deps.db.insert(eventLog).values({ id: 1, lastPosition: 0n }).onConflictDoNothing();
      }
      isInitialized = true;
      return writeLog(deps);
    },
  });
}

/**
 * Runs one round. Returns whether there is more to do at once. The index's progress is read before the transaction: Ponder
 * locks its tables and then its checkpoint, and a transaction that held that and waited for a table would block it.
 */
export async function writeLog({ db, publicClient, logger }: LogWriterDeps): Promise<boolean> {
  const progress = await indexProgress(db);
  if (progress !== null && !(await hasNews(db, progress.timestamp))) return false;
  const undone = progress === null ? new Set<Hex>() : await findUndoneBlocks(db, publicClient);
  try {
    return await db.transaction(
      async (tx) => {
        const log = await openLog(tx);
        if (log === null) return false;
        const before = { ...log.state };
        const reverted = progress === null ? 0 : await revertUndone(log, undone, progress);
        // Without an index there are no views to query, and a failed query would abort the transaction.
        const moreOfChain = reverted > 0 || (progress !== null && (await appendFromChain(log, progress)));
        // A staged event can be the consequence of a chain event, so it comes after it.
        const staged = moreOfChain ? 0 : await appendStaged(log);
        if (!isDeepStrictEqual(log.state, before)) {
          await tx.update(eventLog).set(log.state).where(eq(eventLog.id, 1));
          await tx.execute(sql`select pg_notify(${EVENTS_APPENDED}, ${log.state.lastPosition.toString()})`);
        }
        if (reverted > 0) logger.warn({ reverted }, "events: reverted after a reorg");
        return moreOfChain || staged === BATCH;
      },
      { isolationLevel: "repeatable read" },
    );
  } catch (error) {
    // Another process has advanced the log since this round's snapshot.
    if (hasSqlState(error, SQLSTATE.serializationFailure)) return false;
    throw error;
  }
}

const readNews = prepare<{ news: boolean }>(
  "event_log_news",
  sql`select exists (select 1 from app.event where position is null)
      or exists (select 1 from app.event_deadline where due_at <= ${sql.placeholder("now")})
      or exists (select 1 from onchain.escrow_event where id > coalesce(log.scanned_id, ''))
      or exists (select 1 from app.expired_attempt e join app.terms t using (id) where e.logged_up_to is not null)
      or (log.scanned_id is not null and not exists (
        select 1 from onchain.escrow_event where id = log.scanned_id and block_hash = log.scanned_hash)) as news
    from app.event_log log where log.id = 1`,
);

/** Whether a round would find anything. Runs many times a second, so it checks indexes and opens no transaction. */
async function hasNews(db: Database, now: number): Promise<boolean> {
  const [row] = await readNews(db, { now });
  return row?.news ?? true;
}

/**
 * Age in seconds, at `now`, of the oldest event that is due for the log and not in it; 0 if there is none. A deadline
 * can be due at 0: at once.
 */
export async function readLogLag(db: Executor, now: number): Promise<number> {
  const { rows } = await db.execute<{ lag: number }>(sql`
    select greatest(0, ${now} - least(
      (select chain.timestamp from onchain.escrow_event chain where chain.id > coalesce(
        (select scanned_id from app.event_log where id = 1), '') order by chain.id limit 1),
      (select extract(epoch from occurred_at) from app.event where position is null order by id limit 1),
      (select min(due_at) from app.event_deadline where due_at > 0)))::float8 as lag`);
  return rows[0]?.lag ?? 0;
}

/** Null while another process writes. */
async function openLog(tx: Transaction): Promise<Log | null> {
  await tx.execute(
    sql`select set_config('idle_in_transaction_session_timeout', ${ROUND_IDLE_TIMEOUT}, true)`,
  );
  const [state] = await tx.select().from(eventLog).for("update", { skipLocked: true });
  return state === undefined ? null : { state, tx };
}

async function revertUndone(log: Log, undone: ReadonlySet<Hex>, progress: IndexProgress): Promise<number> {
  const { state, tx } = log;
  if (undone.size === 0) return 0;
  const tail = await readChainTail(tx);
  const lost = tail.filter(({ blockHash, indexed }) => !indexed && undone.has(blockHash as Hex));
  const at = new Date(progress.timestamp * 1000);
  const contractIds = await revertChainEvents(log, lost, at);
  await armDeadlines(tx, contractIds);

  // If the whole tail is undone, the next round continues from its oldest event.
  const newest = tail.find((row) => !lost.includes(row)) ?? (tail.length === TAIL ? lost.at(-1) : undefined);
  const wasScanned = state.scannedHash !== null && undone.has(state.scannedHash);
  if (lost.length > 0 || wasScanned) {
    state.scannedId = newest?.chainEventId ?? null;
    state.scannedBlock = newest?.blockNumber ?? null;
    state.scannedHash = newest?.blockHash ?? null;
  }
  return lost.length;
}

/** Appends chain events that were passed over, then new ones, then due deadlines. Returns whether there is more. */
async function appendFromChain(log: Log, progress: IndexProgress): Promise<boolean> {
  const { state, tx } = log;
  if (!(await indexHolds(tx, state))) return false;
  if (await appendPassedOver(log)) return true;

  const rows = await readChainEvents(tx, { after: state.scannedId ?? "", limit: BATCH });
  const drafts = await draftsOf(tx, rows);
  await append(log, drafts);
  const last = rows.at(-1)?.event;
  if (last !== undefined) {
    state.scannedId = last.id;
    state.scannedBlock = last.blockNumber;
    state.scannedHash = last.blockHash;
  }
  const moved = drafts.filter(({ type }) => PHASE_TYPES.has(type)).map(({ contractId }) => contractId);
  await armDeadlines(tx, moved);
  const passedOver = rows.filter(({ terms }) => terms === null).map(({ event }) => event.contractId);
  if (passedOver.length > 0) {
    await tx
      .update(expiredAttempt)
      .set({ loggedUpTo: "" })
      .where(and(isOneOf(expiredAttempt.id, passedOver), isNull(expiredAttempt.loggedUpTo)));
  }
  if (rows.length === BATCH) return true;

  const due = await takeDueDeadlines(tx, { now: progress.timestamp, limit: BATCH });
  await append(log, due.drafts);
  return due.taken === BATCH;
}

/** Appends events of a contract that were passed over, if its texts are back. Returns whether there was one. */
async function appendPassedOver(log: Log): Promise<boolean> {
  const { state, tx } = log;
  const [attempt] = await tx
    .select({ escrow: expiredAttempt.id, loggedUpTo: expiredAttempt.loggedUpTo })
    .from(expiredAttempt)
    .innerJoin(terms, eq(terms.id, expiredAttempt.id))
    .where(isNotNull(expiredAttempt.loggedUpTo))
    .limit(1);
  if (attempt === undefined) return false;
  const escrow = attempt.escrow;
  const only = { escrow, upTo: state.scannedId ?? "" };
  const rows = await readChainEvents(tx, { after: attempt.loggedUpTo ?? "", limit: BATCH, only });
  await append(log, await draftsOf(tx, rows));
  const loggedUpTo = rows.length === BATCH ? (rows.at(-1)?.event.id ?? null) : null;
  if (loggedUpTo === null) await armDeadlines(tx, [escrow]);
  await tx.update(expiredAttempt).set({ loggedUpTo }).where(eq(expiredAttempt.id, escrow));
  return true;
}

/** Whether the index has all that was scanned. Rows disappear in a reorg, and briefly when the indexer restarts. */
async function indexHolds(db: Executor, { scannedId, scannedHash }: Log["state"]): Promise<boolean> {
  if (scannedId === null || scannedHash === null) return true;
  const [row] = await db
    .select({ id: escrowEvent.id })
    .from(escrowEvent)
    .where(and(eq(escrowEvent.id, scannedId), eq(escrowEvent.blockHash, scannedHash)));
  return row !== undefined;
}

/** The chain's newest events in the log that are not reverted, and whether the index has each. */
function readChainTail(db: Executor) {
  return db
    .select({ ...getTableColumns(event), indexed: isNotNull(escrowEvent.id).mapWith(Boolean) })
    .from(event)
    .leftJoin(
      escrowEvent,
      and(eq(escrowEvent.id, event.chainEventId), eq(escrowEvent.blockHash, event.blockHash)),
    )
    .where(and(isNotNull(event.chainEventId), isNull(event.revertedBy), isNotNull(event.position)))
    .orderBy(desc(event.chainEventId))
    .limit(TAIL);
}

/** Hashes of blocks that left the chain, among those whose events the index has lost; none if the node fails. */
async function findUndoneBlocks(
  db: Executor,
  publicClient: Pick<PublicClient, "getBlock">,
): Promise<Set<Hex>> {
  const undone = new Set<Hex>();
  const [state] = await db.select().from(eventLog).where(eq(eventLog.id, 1));
  if (state === undefined || (await indexHolds(db, state))) return undone;

  const scanned = { blockNumber: state.scannedBlock, blockHash: state.scannedHash, indexed: false };
  for (const { blockNumber, blockHash, indexed } of [scanned, ...(await readChainTail(db))]) {
    if (indexed || blockNumber === null) break;
    const hash = blockHash as Hex;
    if (!undone.has(hash) && (await isCanonical({ publicClient }, blockNumber, hash)) !== false) break;
    undone.add(hash);
  }
  return undone;
}

/** The log during one round of its writer. */
interface Log {
  state: typeof eventLog.$inferSelect;
  tx: Transaction;
}

type NewEvent = typeof event.$inferInsert;

/** Appends drafts in order. Skips those whose source is in the log, and reverts time-outs that they disprove. */
async function append(log: Log, drafts: readonly EventDraft[]): Promise<void> {
  if (drafts.length === 0) return;
  const sources = drafts.map(({ source }) => source);
  const known = await log.tx
    .select({ source: event.source })
    .from(event)
    .where(and(isOneOf(event.source, sources), isNull(event.revertedBy)));
  const seen = new Set(known.map(({ source }) => source));
  const timeouts = await liveTimeouts(log, drafts);
  const rows: NewEvent[] = [];
  for (const draft of drafts) {
    if (seen.has(draft.source)) continue;
    seen.add(draft.source);
    const disproved = CONTRADICTS_TIMEOUT.has(draft.type) ? timeouts.get(draft.contractId) : undefined;
    if (disproved !== undefined) {
      await revert(log, disproved, draft.occurredAt);
      timeouts.delete(draft.contractId);
    }
    rows.push(nextRow(log, draft));
  }
  await insertRows(log.tx, event, rows);
}

/** Assigns positions to staged events in the order in which they were written. Returns how many. */
async function appendStaged({ state, tx }: Log): Promise<number> {
  const { rowCount } = await tx.execute(sql`
    update app.event set position = ${state.lastPosition.toString()}::bigint + staged.ordinal
    from (
      select id, row_number() over (order by id) as ordinal from app.event where position is null
      order by id limit ${BATCH}) staged
    where event.id = staged.id`);
  state.lastPosition += BigInt(rowCount ?? 0);
  return rowCount ?? 0;
}

/** Reverts events, and the time-outs and deadline notices that followed from them. Returns their contracts. */
async function revertChainEvents(
  log: Log,
  undone: readonly EventRow[],
  occurredAt: Date,
): Promise<Address[]> {
  if (undone.length === 0) return [];
  const contractIds = [...new Set(undone.map(({ contractId }) => contractId))];
  const [oldest = 0n] = undone.map(({ position }) => position ?? 0n).sort((a, b) => Number(a - b));
  const followers = await log.tx
    .select()
    .from(event)
    .where(
      and(
        isOneOf(event.contractId, contractIds),
        inArray(event.type, [...TIMEOUT_TYPES, "deadline.approaching"]),
        gt(event.position, oldest),
        isNull(event.revertedBy),
      ),
    );
  const all = [...undone, ...followers].sort((a, b) => Number((b.position ?? 0n) - (a.position ?? 0n)));
  await revert(log, all, occurredAt);
  return contractIds;
}

async function revert(log: Log, rows: readonly EventRow[], occurredAt: Date): Promise<void> {
  for (const { id, position, type, contractId, agents, visibleTo } of rows) {
    const correction = nextRow(log, {
      type: "event.reverted",
      contractId: contractId,
      agents: agents,
      visibleTo,
      data: { eventId: String(position), type },
      occurredAt,
      source: `revert:${position}`,
    });
    await log.tx.insert(event).values(correction);
    await log.tx.update(event).set({ revertedBy: correction.position }).where(eq(event.id, id));
  }
}

function nextRow({ state }: Log, draft: EventDraft): NewEvent {
  state.lastPosition += 1n;
  return { ...draft, position: state.lastPosition };
}

/** Time-outs in the log that the drafts disprove, by contract. */
async function liveTimeouts({ tx }: Log, drafts: readonly EventDraft[]): Promise<Map<string, EventRow[]>> {
  const ids = drafts.filter(({ type }) => CONTRADICTS_TIMEOUT.has(type)).map(({ contractId }) => contractId);
  if (ids.length === 0) return new Map();
  const rows = await tx
    .select()
    .from(event)
    .where(
      and(isOneOf(event.contractId, ids), inArray(event.type, [...TIMEOUT_TYPES]), isNull(event.revertedBy)),
    );
  const byContract = new Map<string, EventRow[]>();
  for (const row of rows) byContract.set(row.contractId, [...(byContract.get(row.contractId) ?? []), row]);
  return byContract;
}
