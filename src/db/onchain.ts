/**
 * Read-only access to the indexer's views (Postgres schema `onchain`), how far they have come, and whether they still
 * show all that they have shown. Ponder's own schema is not imported, because that loads Ponder: a test compares them.
 */
import { LIMITS } from "@working-contracts/protocol/limits";
import type { StatusFacts } from "@working-contracts/protocol/status";
import { boundsOf } from "@working-contracts/protocol/terms";
import type { EscrowTerms, Hex } from "@working-contracts/protocol/types";
import { and, eq, type Placeholder, type SQL, sql } from "drizzle-orm";
import { boolean, customType, integer, json, pgSchema, primaryKey, text } from "drizzle-orm/pg-core";
import { unavailable } from "../errors.js";
import * as columns from "../indexer/columns.js";
import { type Executor, hasSqlState, type Notifications, SQLSTATE } from "./client.js";
import { prepare } from "./statements.js";

const onchain = pgSchema("onchain");

/** Ponder's column builders, with plain drizzle's. Its bigint column is a full uint256. */
const builders = {
  text,
  integer,
  boolean,
  json,
  hex: text,
  bigint: customType<{ data: bigint; driverData: string }>({
    dataType: () => "numeric(78)",
    fromDriver: (value) => BigInt(value),
    toDriver: (value) => value.toString(),
  }),
} as unknown as Parameters<typeof columns.workingContract>[0];

export const workingContract = onchain.table("working_contract", columns.workingContract(builders));
export const vote = onchain.table("vote", columns.vote(builders), (table) => [
  primaryKey({ columns: [table.contractId, table.backupAgent] }),
]);
export const draw = onchain.table("draw", columns.draw(builders), (table) => [
  primaryKey({ columns: [table.contractId, table.backupAgent] }),
]);
export const deferredPayout = onchain.table("deferred_payout", columns.deferredPayout(builders), (table) => [
  primaryKey({ columns: [table.contractId, table.payee] }),
]);
export const stake = onchain.table("stake", columns.stake(builders));
export const escrowEvent = onchain.table("escrow_event", columns.escrowEvent(builders));
export const parameterSet = onchain.table("parameter_set", columns.parameterSet(builders));

/** A contract's columns. Large integers are as Postgres sends them, or parsed. */
export type Loose<T> = { [K in keyof T]: bigint extends T[K] ? T[K] | string : T[K] };

export function statusFacts(
  row: Loose<Pick<typeof workingContract.$inferSelect, keyof StatusFacts>>,
): StatusFacts {
  const { phase, settled, outcomes, criteriaCount, computedCriteria } = row;
  return {
    phase: phase as StatusFacts["phase"],
    settled,
    outcomes,
    criteriaCount,
    computedCriteria,
    price: BigInt(row.price),
    matchDeadline: Number(row.matchDeadline),
    deliveryDeadline: Number(row.deliveryDeadline),
    reviewDeadline: Number(row.reviewDeadline),
  };
}

/** SQL: `votingClosesAt` of the contract `c`, and the end of the opening period after it. */
export const votingClosesAtSql = sql`(c.disputed_at + c.ba_voting_window)`;
export const openingEndsAtSql = sql`(c.disputed_at + c.ba_voting_window + ${LIMITS.voteOpeningWindow})`;

/** The longest time for which a vote locks its voter's stake. */
const VOTE_LOCKS = boundsOf("baVotingWindow").max + LIMITS.voteOpeningWindow;

/**
 * SQL: the time (seconds) until which `agent`'s votes lock its stake in the registry; null if none does after `time`.
 * `offset 0` keeps Postgres, which expects a third of the agent's votes, from joining whole tables.
 */
export function lockedUntil(agent: SQL, time: SQL): SQL {
  return sql`(
    select max(${openingEndsAtSql})
    from onchain.vote v join lateral (
      select * from onchain.working_contract one where one.id = v.contract_id offset 0) c on true
    where v.backup_agent = ${agent} and v.sealed_at > ${time} - ${VOTE_LOCKS})`;
}

/** The facts on chain about one agent and one dispute. */
export interface VoterFacts {
  stake: Loose<Pick<typeof stake.$inferSelect, "amount" | "since" | "releasableAt">> | null;
  drawn: boolean;
  voted: boolean;
}

/** SQL: the {@link VoterFacts} about `agent` and the contract `id`. */
export function voterFacts(id: Placeholder, agent: Placeholder): SQL<VoterFacts> {
  const isIn = (table: typeof draw | typeof vote) =>
    sql`exists (select 1 from ${table} where ${and(eq(table.contractId, id), eq(table.backupAgent, agent))})`;
  return sql`json_build_object('drawn', ${isIn(draw)}, 'voted', ${isIn(vote)}, 'stake', (
    select json_build_object('amount', ${stake.amount}::text, 'since', ${stake.since}::text,
      'releasableAt', ${stake.releasableAt}::text)
    from ${stake} where ${eq(stake.agent, agent)}))`;
}

/** `app.terms.escrow_terms`: the on-chain half of the terms. Integers above 2^53 are stored as decimal strings. */
export function toStoredTerms(terms: EscrowTerms): Record<string, unknown> {
  return { ...terms, price: terms.price.toString() };
}

/** Reads terms written by {@link toStoredTerms}; nothing else writes the column. */
export function parseStoredTerms(stored: Record<string, unknown>): EscrowTerms {
  return { ...(stored as unknown as EscrowTerms), price: BigInt(stored.price as string) };
}

/** SQL: the block of one of Ponder's checkpoints. All digits: 10 for the time, 16 for the chain id, 16 for the block. */
export function blockOf(checkpoint: "latest_checkpoint" | "finalized_checkpoint"): string {
  return `substring(${checkpoint} from 27 for 16)`;
}

/** Deepest reorg that we reckon with, in blocks. */
export const REORG_DEPTH = 64n;

/** Postgres channel that Ponder notifies with each block it commits. */
export const INDEX_CHANGED = "onchain_live_query";

const latestBlock = sql.raw(blockOf("latest_checkpoint"));
/** SQL: the checkpoint's row, unless the indexer has not caught up yet or is catching up after a restart. */
const readyIndex = sql`onchain._ponder_meta meta, onchain._ponder_checkpoint
  where meta.key = 'app' and meta.value ->> 'is_ready' = '1'`;

export interface IndexProgress {
  /** Newest block whose events are all visible in the views. `timestamp` is its time in seconds. */
  block: bigint;
  timestamp: number;
}

const readProgress = prepare<{ block: string; timestamp: string }>(
  "index_progress",
  sql`select ${latestBlock} as block, substring(latest_checkpoint for 10) as timestamp from ${readyIndex}`,
);

/**
 * Returns the views' progress; null until the indexer has caught up for the first time, and while it catches up after a
 * restart. It can be too high during a reorg: see {@link waitForIndexed}.
 */
export async function indexProgress(db: Executor): Promise<IndexProgress | null> {
  try {
    const [row] = await readProgress(db, {});
    return row === undefined ? null : { block: BigInt(row.block), timestamp: Number(row.timestamp) };
  } catch (error) {
    if (hasSqlState(error, SQLSTATE.undefinedTable)) return null;
    throw error;
  }
}

/** The block of {@link indexProgress}. */
export async function indexedBlock(db: Executor): Promise<bigint | null> {
  return (await indexProgress(db))?.block ?? null;
}

/**
 * SQL: the newest block that the views show; null unless they still show everything they have ever shown, except events
 * that left the chain. A restarted indexer first reverts rows that were not final and reads them again; until it reaches
 * the event log's position, the views are outdated.
 */
export const wholeBlock = sql<string | null>`(select ${latestBlock} from ${readyIndex}
  and ${latestBlock}::numeric >= coalesce((select scanned_block from app.event_log where id = 1), 0))`;
/** SQL: whether there is a {@link wholeBlock}. */
export const isIndexWhole = sql<boolean>`${wholeBlock} is not null`;

/** SQL: the time (seconds) of the newest block that the views show; null while the indexer catches up. */
export const indexedTime = sql<number>`(select substring(latest_checkpoint for 10)::int8 from ${readyIndex})`;

export interface IndexedTarget {
  blockNumber: bigint;
  /** With `escrow`: also wait for an event of this escrow in exactly this block, which a reorg cannot fake. */
  blockHash?: Hex | undefined;
  escrow?: Hex | undefined;
  /** With `blockHash`: also wait for a change of this agent's stake in exactly this block, or in a later one. */
  staker?: Hex | undefined;
  timeoutMs: number;
}

/**
 * Resolves to true once the views show the target, or to false after `timeoutMs`. Database errors count as "not yet".
 */
export function waitForIndexed(db: Executor, target: IndexedTarget): Promise<boolean> {
  const waits = waitsOf(db);
  return new Promise((resolve) => {
    waits.waiters.add({ target, deadline: performance.now() + target.timeoutMs, resolve });
    if (waits.waiters.size === 1) void poll(db, waits);
    else waits.look();
  });
}

/** Has waits on this handle look when the index changes, and otherwise seldom. */
export function lookWhenIndexed(db: Executor, notifications: Pick<Notifications, "listen">): void {
  const waits = waitsOf(db);
  waits.intervalMs = SAFETY_INTERVAL_MS;
  const onNotification = (): void => waits.look();
  notifications.listen(INDEX_CHANGED, { onNotification, onListening: onNotification });
}

interface Waiter {
  target: IndexedTarget;
  /** Of `performance.now()`: the host's clock can be set back. */
  deadline: number;
  resolve: (visible: boolean) => void;
}

/** Without notifications. */
const POLL_INTERVAL_MS = 20;
/** In case a notification is lost. */
const SAFETY_INTERVAL_MS = 250;

/** The requests that wait on one handle share one poll. */
interface Waits {
  waiters: Set<Waiter>;
  intervalMs: number;
  /** Ends the pause of the poll, or leaves out its next one. */
  look(): void;
}

const waitsByHandle = new WeakMap<Executor, Waits>();

function waitsOf(db: Executor): Waits {
  const waits = waitsByHandle.get(db) ?? { waiters: new Set(), intervalMs: POLL_INTERVAL_MS, look() {} };
  waitsByHandle.set(db, waits);
  return waits;
}

async function poll(db: Executor, waits: Waits): Promise<void> {
  const { waiters } = waits;
  while (waiters.size > 0) {
    const news = new Promise<void>((resolve) => {
      waits.look = resolve;
    });
    const asked = [...waiters];
    const visible = await visibleTargets(db, asked).catch(() => new Set<Waiter>());
    for (const waiter of asked) {
      if (!visible.has(waiter) && performance.now() < waiter.deadline) continue;
      waiters.delete(waiter);
      waiter.resolve(visible.has(waiter));
    }
    const timer = setTimeout(waits.look, waits.intervalMs);
    if (waiters.size > 0) await news;
    clearTimeout(timer);
  }
}

/** The views' newest block, with those of the asked events and stakes that they show; no row until they are ready. */
const shown = prepare<{ block: string; events: string[] | null; stakes: string[] | null }>(
  "index_shows",
  sql`
    select ${latestBlock} as block,
      (select array_agg(distinct event.block_hash || event.contract_id) from onchain.escrow_event event
        where event.block_number = any(${sql.placeholder("blocks")}::numeric[])
          and event.contract_id = any(${sql.placeholder("escrows")}::text[])) as events,
      (select array_agg(concat_ws(' ', stake.agent, stake.block_number, stake.block_hash)) from onchain.stake stake
        where stake.agent = any(${sql.placeholder("stakers")}::text[])) as stakes
    from ${readyIndex}`,
);

async function visibleTargets(db: Executor, waiters: Waiter[]): Promise<Set<Waiter>> {
  const targets = waiters.map(({ target }) => target);
  const exact = targets.filter(({ blockHash }) => blockHash !== undefined);
  const [row] = await shown(db, {
    blocks: exact.flatMap(({ escrow, blockNumber }) =>
      escrow === undefined ? [] : [blockNumber.toString()],
    ),
    escrows: exact.flatMap(({ escrow = [] }) => escrow),
    stakers: exact.flatMap(({ staker = [] }) => staker),
  });
  if (row === undefined) return new Set();
  const indexed = BigInt(row.block);
  const events = new Set(row.events);
  const stakes = new Map(row.stakes?.map((text) => [text.slice(0, text.indexOf(" ")), text.split(" ")]));
  const isShown = ({ blockNumber, blockHash, escrow, staker }: IndexedTarget): boolean => {
    if (blockNumber > indexed) return false;
    if (blockHash === undefined) return true;
    if (escrow !== undefined) return events.has(`${blockHash}${escrow}`);
    if (staker === undefined) return true;
    const [, changedAt, changedIn] = stakes.get(staker) ?? [];
    // A stake still missing at this depth has been withdrawn; before that, the index might not have it yet.
    if (changedAt === undefined) return indexed >= blockNumber + REORG_DEPTH;
    return changedIn === blockHash || BigInt(changedAt) > blockNumber;
  };
  return new Set(waiters.filter(({ target }) => isShown(target)));
}

/** A row read together with {@link wholeBlock}. */
export interface IndexedRow {
  indexBlock: string | null;
}

/** Where facts on chain are read, and what they are compared with. */
export interface IndexReader {
  db: Executor;
  clock: { now(): number; knownBlock(): bigint };
}

/**
 * Throws `unavailable` (503) if the views are, or were when `rows` were read, older than the state already shown to
 * callers, or too far behind the chain: statuses that begin by the clock would be wrong. Call it with the rows, or after
 * the read.
 */
export async function requireIndex(
  { db, clock }: IndexReader,
  rows: readonly IndexedRow[] = [],
): Promise<void> {
  const { indexBlock } = rows[0] ?? (await readWholeBlock(db));
  if (indexBlock === null)
    throw unavailable("The chain index is catching up after a restart. Retry the request.");
  if (BigInt(indexBlock) < clock.knownBlock())
    throw unavailable("The chain index is behind the chain. Retry the request.");
}

async function readWholeBlock(db: Executor): Promise<IndexedRow> {
  const { rows } = await db.execute<{ indexBlock: string | null }>(sql`select ${wholeBlock} as "indexBlock"`);
  return rows[0] ?? { indexBlock: null };
}
