/**
 * Read-only access to the indexer's views (Postgres schema `onchain`), and their progress.
 *
 * The tables repeat src/indexer/ponder.schema.ts, because importing that file loads Ponder, which takes about two
 * seconds per process. A test compares the two column by column.
 */
import { LIMITS } from "@working-contracts/protocol/limits";
import { and, inArray, type SQL, sql } from "drizzle-orm";
import { boolean, customType, integer, json, pgSchema, primaryKey, text } from "drizzle-orm/pg-core";
import type { Executor } from "./client.js";

type Hex = `0x${string}`;

const onchain = pgSchema("onchain");
const hex = () => text().$type<Hex>();
/** Ponder's bigint column: a full uint256. */
const uint = customType<{ data: bigint; driverData: string }>({
  dataType: () => "numeric(78)",
  fromDriver: (value) => BigInt(value),
  toDriver: (value) => value.toString(),
});

export const workingContract = onchain.table("working_contract", {
  id: hex().primaryKey(),
  initiator: hex().notNull(),
  namedCounterparty: hex(),
  workerInitiated: boolean().notNull(),
  computedCriteria: boolean().notNull(),
  price: uint().notNull(),
  criteriaCount: integer().notNull(),
  matchDeadline: uint().notNull(),
  withdrawalDeadline: uint().notNull(),
  deliveryDeadline: uint().notNull(),
  reviewDeadline: uint().notNull(),
  termsHash: hex().notNull(),
  protocolFee: integer().notNull(),
  workerStakeRatio: integer().notNull(),
  disputeBondRatio: integer().notNull(),
  backupAgentBondRatio: integer().notNull(),
  earlyWithdrawalSlashRatio: integer().notNull(),
  absentNoneMetClientShare: integer().notNull(),
  baUnclearSlashRatio: integer().notNull(),
  tokenMintRewardFull: integer().notNull(),
  tokenMintRewardReduced: integer().notNull(),
  baEligibilityStake: uint().notNull(),
  baVotingWindow: integer().notNull(),
  baRecruitCount: integer().notNull(),
  payoutHold: integer().notNull(),
  phase: text().notNull(),
  client: hex(),
  worker: hex(),
  outcomes: integer().notNull(),
  deposit: uint(),
  createdAt: uint(),
  matchedAt: uint(),
  deliveredAt: uint(),
  disputedAt: uint(),
  endedAt: uint(),
  deliveryHash: hex(),
  checkpointsRoot: hex(),
  disputeBond: uint(),
  sealedVotes: integer().notNull(),
  openedVotes: integer().notNull(),
  drawn: boolean().notNull(),
  settled: boolean().notNull(),
  settledAt: uint(),
  treasury: hex(),
  clientPayout: uint(),
  workerPayout: uint(),
  treasuryPayout: uint(),
  updatedBlock: uint().notNull(),
  updatedBlockHash: hex().notNull(),
});

export const vote = onchain.table(
  "vote",
  {
    contractId: hex().notNull(),
    backupAgent: hex().notNull(),
    commitment: hex().notNull(),
    bond: uint().notNull(),
    position: integer().notNull(),
    sealedAt: uint().notNull(),
    votes: integer(),
    openedAt: uint(),
    claimed: boolean().notNull(),
    claimedAmount: uint(),
    reward: integer(),
    rewardDeferred: boolean().notNull(),
  },
  (table) => [primaryKey({ columns: [table.contractId, table.backupAgent] })],
);

export const draw = onchain.table(
  "draw",
  { contractId: hex().notNull(), backupAgent: hex().notNull(), drawnAt: uint().notNull() },
  (table) => [primaryKey({ columns: [table.contractId, table.backupAgent] })],
);

export const deferredPayout = onchain.table(
  "deferred_payout",
  { contractId: hex().notNull(), payee: hex().notNull(), amount: uint().notNull() },
  (table) => [primaryKey({ columns: [table.contractId, table.payee] })],
);

export const delegation = onchain.table(
  "delegation",
  {
    agent: hex().notNull(),
    operator: hex().notNull(),
    issuedAt: uint().notNull(),
    revokedAt: uint().notNull(),
  },
  (table) => [primaryKey({ columns: [table.agent, table.operator] })],
);

export const stake = onchain.table("stake", {
  agent: hex().primaryKey(),
  amount: uint().notNull(),
  since: uint().notNull(),
  releasableAt: uint(),
  blockNumber: uint().notNull(),
  blockHash: hex().notNull(),
});

export const escrowEvent = onchain.table("escrow_event", {
  id: text().primaryKey(),
  contractId: hex().notNull(),
  name: text().notNull(),
  args: json().$type<Record<string, unknown>>().notNull(),
  timestamp: uint().notNull(),
  blockNumber: uint().notNull(),
  blockHash: hex().notNull(),
  transactionHash: hex().notNull(),
  logIndex: integer().notNull(),
});

export const parameterSet = onchain.table("parameter_set", {
  id: text().primaryKey(),
  parameters: json().$type<Record<string, number>>().notNull(),
  changedAt: uint().notNull(),
  blockNumber: uint().notNull(),
});

const UNDEFINED_TABLE = "42P01";

export interface IndexProgress {
  /** Newest block whose events are all visible in the views. `timestamp` is its time in seconds. */
  block: bigint;
  timestamp: number;
}

/**
 * Returns the views' progress; null until the indexer has caught up for the first time, and while it catches up after a
 * restart. It can be too high during a reorg and briefly after a restart: see {@link waitForIndexed}.
 */
export async function indexProgress(db: Executor): Promise<IndexProgress | null> {
  try {
    // A checkpoint is all digits: 10 for the timestamp, 16 for the chain id, 16 for the block, then the position in it.
    const { rows } = await db.execute<{ block: string; timestamp: string }>(sql`
      select substring(progress.latest_checkpoint from 27 for 16) as block,
        substring(progress.latest_checkpoint for 10) as timestamp
      from onchain._ponder_meta app, onchain._ponder_checkpoint progress
      where app.key = 'app' and app.value ->> 'is_ready' = '1'`);
    const [row] = rows;
    return row === undefined ? null : { block: BigInt(row.block), timestamp: Number(row.timestamp) };
  } catch (error) {
    if ((error as { code?: string }).code === UNDEFINED_TABLE) return null;
    throw error;
  }
}

/** The block of {@link indexProgress}. */
export async function indexedBlock(db: Executor): Promise<bigint | null> {
  return (await indexProgress(db))?.block ?? null;
}

/**
 * SQL: whether the views still show everything they have ever shown, except events that left the chain. A restarted
 * indexer first reverts rows that were not final and reads them again; until it reaches the event log's position, the
 * views are outdated.
 */
export const isIndexWhole = sql<boolean>`coalesce((
  select meta.value ->> 'is_ready' = '1'
    and substring(progress.latest_checkpoint from 27 for 16)::numeric >= coalesce(log.scanned_block, 0)
  from onchain._ponder_meta meta
  cross join onchain._ponder_checkpoint progress
  left join app.event_log log on log.id = 1
  where meta.key = 'app'), false)`;

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
  let waiters = waitersOf.get(db);
  if (waiters === undefined) {
    waiters = new Set();
    waitersOf.set(db, waiters);
  }
  const set = waiters;
  return new Promise((resolve) => {
    set.add({ target, deadline: Date.now() + target.timeoutMs, resolve });
    if (set.size === 1) void poll(db, set);
  });
}

interface Waiter {
  target: IndexedTarget;
  deadline: number;
  resolve: (visible: boolean) => void;
}

/** A stake still missing after this many blocks has been withdrawn; before that, the index might not have it yet. */
const STAKE_DEPTH = 64n;
const POLL_INTERVAL_MS = 20;

/** All requests that wait on one handle share one poll. */
const waitersOf = new WeakMap<Executor, Set<Waiter>>();

async function poll(db: Executor, waiters: Set<Waiter>): Promise<void> {
  while (waiters.size > 0) {
    const asked = [...waiters];
    const visible = await visibleTargets(db, asked).catch(() => new Set<Waiter>());
    for (const waiter of asked) {
      if (!visible.has(waiter) && Date.now() < waiter.deadline) continue;
      waiters.delete(waiter);
      waiter.resolve(visible.has(waiter));
    }
    if (waiters.size > 0) await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

async function visibleTargets(db: Executor, waiters: Waiter[]): Promise<Set<Waiter>> {
  const indexed = await indexedBlock(db);
  if (indexed === null) return new Set();
  const reached = waiters.filter(({ target }) => target.blockNumber <= indexed);
  const targets = reached.map(({ target }) => target);
  const [events, stakes] = [await eventsOf(db, targets), await stakesOf(db, targets)];
  const isShown = ({ blockNumber, blockHash, escrow, staker }: IndexedTarget): boolean => {
    if (blockHash === undefined) return true;
    if (escrow !== undefined) return events.has(`${blockHash}${escrow}`);
    if (staker === undefined) return true;
    const changed = stakes.get(staker);
    if (changed === undefined) return indexed >= blockNumber + STAKE_DEPTH;
    return changed.blockHash === blockHash || changed.blockNumber > blockNumber;
  };
  return new Set(reached.filter(({ target }) => isShown(target)));
}

/** Block in which each target's stake last changed, by agent. */
async function stakesOf(
  db: Executor,
  targets: IndexedTarget[],
): Promise<Map<Hex, { blockNumber: bigint; blockHash: Hex }>> {
  const stakers = targets.flatMap(({ staker }) => (staker === undefined ? [] : [staker]));
  if (stakers.length === 0) return new Map();
  const { agent, blockNumber, blockHash } = stake;
  const rows = await db.select({ agent, blockNumber, blockHash }).from(stake).where(inArray(agent, stakers));
  return new Map(rows.map((row) => [row.agent, row]));
}

/** Blocks and escrows among the targets that have an event, as concatenated block hash and escrow. */
async function eventsOf(db: Executor, targets: IndexedTarget[]): Promise<Set<string>> {
  const exact = targets.filter(({ blockHash, escrow }) => blockHash !== undefined && escrow !== undefined);
  if (exact.length === 0) return new Set();
  const { contractId, blockNumber, blockHash } = escrowEvent;
  const rows = await db
    .selectDistinct({ blockHash, contractId })
    .from(escrowEvent)
    .where(
      and(
        inArray(
          blockNumber,
          exact.map((target) => target.blockNumber),
        ),
        inArray(
          contractId,
          exact.map((target) => target.escrow as Hex),
        ),
      ),
    );
  return new Set(rows.map((row) => `${row.blockHash}${row.contractId}`));
}

/** SQL: `votingClosesAt` of the contract `c`, and the end of the opening period after it. */
export const votingClosesAtSql = sql`(c.disputed_at + c.ba_voting_window)`;
export const openingEndsAtSql = sql`(c.disputed_at + c.ba_voting_window + ${LIMITS.voteOpeningWindow})`;

/** SQL: the time (seconds) until which `agent`'s votes lock its stake in the registry; null if it never voted. */
export function lockedUntil(agent: SQL): SQL {
  return sql`(
    select max(${openingEndsAtSql})
    from onchain.vote v join onchain.working_contract c on c.id = v.contract_id
    where v.backup_agent = ${agent})`;
}
