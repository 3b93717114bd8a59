/** Enqueues actions that become due with time alone, by the chain's clock; anyone may make the same calls. */
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { notInArray, type SQL, sql } from "drizzle-orm";
import type { BaseLogger } from "pino";
import type { ChainClock } from "../chain/clients.js";
import type { Database, Executor } from "../db/client.js";
import { lockedUntil, openingEndsAtSql, votingClosesAtSql } from "../db/onchain.js";
import { prepare, selected } from "../db/statements.js";
import { AppError } from "../errors.js";
import { TOO_EARLY } from "../relayer/failures.js";
import { MAX_QUEUED } from "../relayer/limits.js";
import {
  claimDeferredOperation,
  claimOperation,
  drawOperation,
  type NewOperation,
  openVoteOperation,
  settleOperation,
  tallyOperation,
  withdrawStakeOperation,
} from "../relayer/operations.js";
import { enqueue } from "../relayer/outbox.js";
import { createLoop, type Loop, type LoopOptions } from "../scheduling.js";

const MAX_BACKOFF_MS = 30_000;
/** Not with every block of a chain that mines each transaction at once. */
const WAKE_INTERVAL_MS = 250;
/** The other half of the queue is left to agents, who cannot wait as long. */
const MAX_QUEUED_BY_KEEPER = MAX_QUEUED / 2;
/** Anyone can create escrows that look due: a round looks at so many rows of a kind, and the next continues behind them. */
const CANDIDATES = 1_000;
/** A keeper that runs stores a due settlement within seconds. */
const LATE_SECONDS = 300;
const DAY = 86_400;

/** A rejected action is retried after this many seconds, doubled with each rejection, up to about four hours. */
const RETRY_SECONDS = 30;
/** Maximum seconds until a draw that drew no one is retried. */
const DRAW_RETRY_SECONDS = 3600;
/** A payee that the token refuses is rarely accepted a minute later: up to three weeks pass between two tries. */
const DEFERRED_RETRY_SECONDS = 3600;
const DEFERRED_MAX_SECONDS = 21 * DAY;
const MAX_RETRY_DOUBLINGS = 10;

/** Any number of keepers can run: the once-keys ensure that each action is stored once. */
export function createKeeper({
  db,
  clock,
  deployment,
  ...looping
}: Pick<LoopOptions, "intervalMs" | "wakers"> & {
  db: Database;
  clock: Pick<ChainClock, "head">;
  deployment: Deployment;
  logger: Pick<BaseLogger, "info" | "warn">;
}): Loop {
  const positions: Positions = new Map();
  return createLoop({
    ...looping,
    name: "keeper",
    wakeIntervalMs: WAKE_INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    // A full queue: the next round retries.
    isExpected: (error) => error instanceof AppError,
    async round(stopping) {
      // The clock can be ahead of blocks to come, and an opening that is too early shows its votes.
      const now = clock.head()?.timestamp ?? 0;
      for await (const due of findDue(db, { now, deployment, positions })) {
        if (stopping.aborted) return;
        const { operation, existing } = await enqueue(db, due, { maxQueued: MAX_QUEUED_BY_KEEPER });
        if (existing) continue;
        const { kind, escrow } = due;
        looping.logger.info({ kind, escrow, operation: operation.id.toString() }, "keeper: due");
      }
    },
  });
}

/** Where the walk of each kind continues: the key of its last candidate. */
type Positions = Map<string, string[]>;

interface Round {
  /** Seconds on the chain's clock. */
  now: number;
  positions: Positions;
  /** 0 finds what was rejected a moment ago as well. */
  patience?: 0 | 1;
}

/** Yields actions due, kind by kind, oldest first ("The keeper's scope"); `positions` keeps where the next round continues. */
export async function* findDue(
  db: Executor,
  { deployment, ...round }: Round & { deployment: Deployment },
): AsyncGenerator<NewOperation, void> {
  const [present] = await readPresent(db, { now: round.now });
  for (const { name, find } of KINDS) if (present?.[name] === true) yield* await find(db, round);
  const stakes = await findStakes.find(db, round);
  yield* stakes.map((row) => withdrawStakeOperation({ deployment, ...row }));
}

/** Pages of candidates that a count looks at. Strangers' escrows, which the keeper leaves alone, fill pages, too. */
const COUNTED_PAGES = 20;

/**
 * How many settlements have been due for {@link LATE_SECONDS} at `now`, and how many tallies and openings of entrusted votes
 * are due, for which no operation is pending: among the first 20 times {@link CANDIDATES} of each kind. Those that the
 * relayer refuses count between their tries as well, or no alert would last. Ends with the page that completes
 * {@link CANDIDATES}: a scrape has no time to count more.
 */
export async function countLate(db: Executor, now: number): Promise<number> {
  let count = 0;
  for (const { find } of [findOpenings, findTallies, ...findSettlements]) {
    const round: Round = { now: now - LATE_SECONDS, positions: new Map(), patience: 0 };
    for (let page = 0; page < COUNTED_PAGES; page++) {
      count += (await find(db, round)).length;
      if (count >= CANDIDATES) return count;
      if (round.positions.size === 0) break;
    }
  }
  return count;
}

interface Kind<Due = NewOperation> {
  name: string;
  /** True if there is a candidate, otherwise no row. */
  isPresent: SQL;
  find(db: Executor, round: Round): Promise<Due[]>;
}

/** SQL: seconds on the chain's clock. */
const NOW = sql.placeholder("now");
const PATIENCE = sql.placeholder("patience");
/** Sorts before every key. */
const START = { numeric: "-1", text: "" };
/** Columns and their types. */
type Key = Record<string, keyof typeof START>;

/** Finds the due rows among the next candidates. After the last candidate it begins again. */
function walk<Row extends object, Due = NewOperation>(
  name: string,
  {
    candidates,
    alias,
    key,
    fields,
    joins = sql``,
    isDue,
    toOperation,
  }: {
    /** Rows that can be due. An index has them in the order of `key`. */
    candidates: SQL;
    alias: string;
    key: Key;
    /** Columns of a due row that the operation needs, with the tables that have them. */
    fields: SQL;
    joins?: SQL;
    isDue: SQL;
    toOperation(row: Row): Due;
  },
): Kind<Due> {
  const as = sql.identifier(alias);
  const keys = Object.keys(key).map((column) => sql`${as}.${sql.identifier(column)}`);
  const columns = sql.join(keys, sql`, `);
  const texts = keys.map((column) => sql`${column}::text`);
  const position = Object.entries(key).map(
    ([column, type]) => sql`${sql.placeholder(column)}::${sql.raw(type)}`,
  );
  const read = prepare<Row & { due: boolean | null; key: string[] }>(
    `keeper_${name}`,
    sql`
      select ${fields}, (${isDue}) as due, array[${sql.join(texts, sql`, `)}] as key
      from (
        select ${as}.* from ${candidates} and (${columns}) > (${sql.join(position, sql`, `)})
        order by ${columns} limit ${CANDIDATES}) ${as} ${joins}
      order by ${columns}`,
  );
  const find: Kind<Due>["find"] = async (db, { now, positions, patience = 1 }) => {
    const after = positions.get(name) ?? Object.values(key).map((type) => START[type]);
    const rows = await read(db, {
      now,
      patience,
      ...Object.fromEntries(Object.keys(key).map((column, i) => [column, after[i]])),
    });
    const last = rows.at(-1);
    if (last !== undefined && rows.length >= CANDIDATES) positions.set(name, last.key);
    else positions.delete(name);
    return rows.filter(({ due }) => due === true).map(toOperation);
  };
  // In the index's order: Postgres would look for any row without an order in the whole table.
  return { name, isPresent: sql`select true from ${candidates} order by ${columns} limit 1`, find };
}

/** SQL: whether this service knows the terms. By key: Postgres would plan a join over all stored terms. */
export const isOurs = (contractId: SQL): SQL => sql`coalesce(
  (select t.id from app.terms t where t.id = ${contractId}),
  (select e.id from app.expired_attempt e where e.id = ${contractId})) is not null`;

/** Phases that end automatically at a deadline, and phases that an action ended. */
const ENDINGS = [
  ["created", "match_deadline"],
  ["matched", "delivery_deadline"],
  ["delivered", "review_deadline"],
  ...["approved", "tallied", "declined", "cancelled", "withdrawn"].map(
    (phase) => [phase, "ended_at"] as const,
  ),
] as const;

/** SQL: whether a rejected action had been due on chain: nodes can be apart, and a reorg sets the time back. */
const WAS_DUE = notInArray(sql`coalesce(reason, '')`, [...TOO_EARLY]);
/** SQL: whether, in addition, the contract had ended when the settlement was rejected. */
const HAD_ENDED = sql`${WAS_DUE} and reason is distinct from 'WrongStatus'`;

const findSettlements = ENDINGS.map(([phase, column]) => {
  const endedAt = sql`c.${sql.identifier(column)}`;
  return walk<{ escrow: Address }>(phase, {
    alias: "c",
    candidates: sql`onchain.working_contract c
      where c.phase = ${phase} and not c.settled and ${endedAt} <= ${NOW}`,
    key: { [column]: "numeric", id: "text" },
    fields: sql`c.id as escrow`,
    // A settlement stored with an action fails with it if the contract has not ended. That does not count as a try.
    isDue: sql`${endedAt} + c.payout_hold <= ${NOW}
      and ${isOurs(sql`c.id`)} and ${notTried(sql`'settle:' || c.id`, { lengthens: HAD_ENDED })}`,
    toOperation: settleOperation,
  });
});

const DISPUTED = {
  alias: "c",
  candidates: sql`onchain.working_contract c where c.phase = 'disputed' and not c.settled`,
  key: { created_at: "numeric", id: "text" },
} as const;

// A draw too late for its seed block drew no one. The key changes hourly, so it is retried within the hour.
// The index can be ahead of the clock by a block.
const DRAW_KEY = sql`'draw:' || c.id || ':' || floor(
  greatest(${NOW} - c.disputed_at, 0) / ${DRAW_RETRY_SECONDS})`;
const findDraws = walk<{ escrow: Address; seats: number; onceKey: string }>("draws", {
  ...DISPUTED,
  fields: sql`c.id as escrow, c.ba_recruit_count as seats, ${DRAW_KEY} as "onceKey"`,
  isDue: sql`not c.drawn and c.ba_recruit_count > 0 and ${votingClosesAtSql} > ${NOW}
    and ${isOurs(sql`c.id`)} and ${notTried(DRAW_KEY)}`,
  toOperation: drawOperation,
});

const HAS_VOTING_CLOSED = sql`(
  ${votingClosesAtSql} <= ${NOW}
  or (c.ba_recruit_count > 0 and c.sealed_votes = c.ba_recruit_count))`;

const findTallies = walk<{ escrow: Address }>("tallies", {
  ...DISPUTED,
  fields: sql`c.id as escrow`,
  isDue: sql`((${HAS_VOTING_CLOSED} and c.opened_votes = c.sealed_votes) or ${openingEndsAtSql} <= ${NOW})
    and ${isOurs(sql`c.id`)} and ${notTried(sql`'tally:' || c.id`)}`,
  toOperation: tallyOperation,
});

/** `offset 0` keeps Postgres from joining whole tables. */
const VOTES = {
  alias: "v",
  joins: sql`join lateral (select * from onchain.working_contract one where one.id = v.contract_id offset 0) c on true`,
  key: { contract_id: "text", backup_agent: "text" },
} as const;
const UNCLAIMED = sql`onchain.vote v where not v.claimed`;
const DEFERRED = sql`onchain.vote v where v.reward_deferred`;

/** From the disputed contracts: votes that were never opened stay unclaimed for good, and would hold up the others. */
const findOpenings = walk<{ escrow: Address; backupAgent: Address; votes: number; salt: Hex }>("openings", {
  ...DISPUTED,
  joins: sql`left join lateral (
    select one.* from app.entrusted_vote one
    join onchain.vote v on v.contract_id = one.contract_id and v.backup_agent = one.backup_agent
      and v.commitment = one.commitment
    where one.contract_id = c.id and v.votes is null offset 0) mine on true`,
  fields: sql`c.id as escrow, mine.backup_agent as "backupAgent", mine.votes, mine.salt`,
  isDue: sql`mine.votes is not null and ${HAS_VOTING_CLOSED} and ${openingEndsAtSql} > ${NOW}
    and ${notTried(sql`'open-vote:' || c.id || ':' || mine.backup_agent`)}`,
  toOperation: openVoteOperation,
});

function findClaims(name: string, candidates: SQL, onceKey: SQL): Kind {
  return walk<{ escrow: Address; backupAgent: Address; onceKey: string }>(name, {
    ...VOTES,
    candidates,
    fields: sql`v.contract_id as escrow, v.backup_agent as "backupAgent", ${onceKey} as "onceKey"`,
    isDue: sql`v.votes is not null and c.phase = 'tallied' and c.ended_at + c.payout_hold <= ${NOW}
      and ${isOurs(sql`c.id`)} and ${notTried(onceKey)}`,
    toOperation: claimOperation,
  });
}

const CLAIM_KEY = sql`'claim:' || c.id || ':' || v.backup_agent`;
/** Payouts to voters, and rewards deferred by the daily mint cap, which are tried once a day. */
const findAllClaims = [
  findClaims("claims", UNCLAIMED, CLAIM_KEY),
  findClaims("rewards", DEFERRED, sql`${CLAIM_KEY} || ':' || floor(${NOW}::numeric / ${DAY})`),
];

/** Payouts that the token refused. Each that succeeds begins a new key, because the payee can be refused again. */
const DEFERRED_KEY = sql`'claim-deferred:' || d.contract_id || ':' || d.payee || ':' || (
  select count(*) from app.operation paid
  where paid.escrow = d.contract_id and paid.kind = 'claim-deferred' and paid.state in ('mined', 'final'))`;
const IS_NONE_HELD = sql`(
  select o.id from app.operation o where o.state = 'held' and o.kind = 'claim-deferred' limit 1) is null`;
const findDeferred = walk<{ escrow: Address; payee: Address; onceKey: string }>("deferred", {
  alias: "d",
  candidates: sql`onchain.deferred_payout d where d.amount > 0`,
  key: { amount: "numeric", contract_id: "text", payee: "text" },
  fields: sql`d.contract_id as escrow, d.payee, ${DEFERRED_KEY} as "onceKey"`,
  // While the token is paused, one waits for its end: all of them would fill the queue.
  isDue: sql`${isOurs(sql`d.contract_id`)} and ${IS_NONE_HELD}
    and ${notTried(DEFERRED_KEY, { retrySeconds: DEFERRED_RETRY_SECONDS, maxSeconds: DEFERRED_MAX_SECONDS })}`,
  toOperation: claimDeferredOperation,
});

/** Openings first: only they fail permanently if they are late. */
const KINDS = [findOpenings, ...findSettlements, findDraws, findTallies, ...findAllClaims, findDeferred];

/** Which kinds have candidates: most rounds find none, and each statement wakes this process and Postgres. */
const readPresent = prepare<Record<string, true | null>>(
  "keeper_present",
  sql`select ${selected(Object.fromEntries(KINDS.map(({ name, isPresent }) => [name, sql`(${isPresent})`])))}`,
);

/**
 * SQL: whether a dispute from before the release of the stake `s` awaits its agent's vote: without the stake the seat would
 * stay empty. Later disputes do not count, or one after another could hold the stake.
 */
const IS_AWAITED = sql`(
  select c.id from (select * from onchain.draw where backup_agent = s.agent limit ${CANDIDATES}) d
  join lateral (select * from onchain.working_contract one where one.id = d.contract_id offset 0) c on true
  where c.phase = 'disputed' and c.disputed_at < s.releasable_at and not ${HAS_VOTING_CLOSED} and (
    select v.position from onchain.vote v where v.contract_id = c.id and v.backup_agent = s.agent) is null
  limit 1) is not null`;

type Stake = { agent: Address; onceKey: string };
/** Stakes of this service's agents whose unbonding has ended. The key includes the time, so a later stake of the same agent gets a new key. */
const STAKE_KEY = sql`'withdraw-stake:' || s.agent || ':' || s.releasable_at`;
const findStakes = walk<Stake, Stake>("stakes", {
  alias: "s",
  candidates: sql`onchain.stake s where s.releasable_at <= ${NOW}`,
  key: { releasable_at: "numeric", agent: "text" },
  fields: sql`s.agent, ${STAKE_KEY} as "onceKey"`,
  isDue: sql`coalesce(${lockedUntil(sql`s.agent`, sql`s.releasable_at`)}, 0) <= ${NOW}
    and ${notTried(STAKE_KEY)}
    and exists (select 1 from app.operation o where o.caller = s.agent and (
      (o.kind = 'stake' and o.state in ('mined', 'final')) or o.kind = 'request-unstake'))
    and not ${IS_AWAITED}`,
  toOperation: (stake) => stake,
});

/**
 * SQL: no pending or done operation has this key, and its last rejection is long enough ago: longer with each rejection
 * that `lengthens` the wait. Evaluated per row by key: Postgres would turn `not exists` into a join with every operation
 * ever stored.
 */
function notTried(
  onceKey: SQL,
  { retrySeconds = RETRY_SECONDS, maxSeconds = DAY, lengthens = WAS_DUE } = {},
): SQL {
  return sql`(
    select o.id from app.operation o where o.once_key = ${onceKey} and o.state <> 'rejected' limit 1) is null
    and coalesce((
      select max(r.created_at) + make_interval(secs => ${PATIENCE} * least(${retrySeconds} * power(
        2, greatest(count(*) filter (where ${lengthens}) - 1, 0)), ${maxSeconds}))
      from (
        select created_at, reason from app.operation where once_key = ${onceKey} and state = 'rejected'
        order by id desc limit ${MAX_RETRY_DOUBLINGS}
      ) r), '-infinity') <= now()`;
}
