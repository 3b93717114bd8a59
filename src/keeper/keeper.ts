/**
 * Enqueues actions that become due with time alone: settlements, draws, openings, tallies, claims, unbonded stakes. A
 * convenience: statuses are correct without it, and anyone may make the same calls. Due actions are found by the chain's
 * clock, in bounded queries on the index, minus actions already in the outbox.
 */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { type SQL, sql } from "drizzle-orm";
import type { BaseLogger } from "pino";
import type { ChainClock } from "../chain/clients.js";
import type { Database, Executor } from "../db/client.js";
import { lockedUntil, openingEndsAtSql, votingClosesAtSql } from "../db/onchain.js";
import { AppError } from "../errors.js";
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
import { createLoop, type Loop, type Wakers } from "../scheduling.js";

const MAX_BACKOFF_MS = 30_000;
/** Not with every block of a chain that mines each transaction at once. */
const WAKE_INTERVAL_MS = 250;
/** The other half of the queue is left to agents, who cannot wait as long. */
const MAX_QUEUED_BY_KEEPER = MAX_QUEUED / 2;
/** Anyone can create escrows that look due: a round looks at so many rows of a kind, and the next continues behind them. */
const CANDIDATES = 1_000;
/** A keeper that runs stores a due settlement within seconds. */
const LATE_SECONDS = 300;
/** Maximum stakes per round; the next round finds the rest. */
const LIMIT = 100;
const DAY = 86_400;

/** A rejected action is retried after this many seconds, doubled with each rejection, up to a day. */
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
  logger,
  intervalMs,
  wakers,
}: {
  db: Database;
  clock: Pick<ChainClock, "now">;
  deployment: Deployment;
  logger: Pick<BaseLogger, "info" | "warn">;
  intervalMs: number;
  wakers?: Wakers;
}): Loop {
  const places: Places = new Map();
  return createLoop({
    name: "keeper",
    logger,
    intervalMs,
    wakers,
    wakeIntervalMs: WAKE_INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    // A full queue: the next round retries.
    isExpected: (error) => error instanceof AppError,
    async round(stopping) {
      for await (const due of findDue(db, { now: clock.now(), deployment, places })) {
        if (stopping.aborted) return;
        const { operation, existing } = await enqueue(db, due, { maxQueued: MAX_QUEUED_BY_KEEPER });
        if (existing) continue;
        const { kind, escrow } = due;
        logger.info({ kind, escrow, operation: operation.id.toString() }, "keeper: due");
      }
    },
  });
}

/** Where the walk of each kind continues: the key of its last candidate. */
type Places = Map<string, string[]>;

interface Round {
  /** Seconds on the chain's clock. */
  now: number;
  places: Places;
}

/**
 * Yields actions due, kind by kind, oldest first. A round looks at {@link CANDIDATES} of a kind; `places` keeps where the
 * next continues. Only for contracts that this service quoted: anyone may settle the others.
 */
export async function* findDue(
  db: Executor,
  { deployment, ...round }: Round & { deployment: Deployment },
): AsyncGenerator<NewOperation, void> {
  // Openings first: only they fail permanently if they are late.
  const kinds = [dueOpenings, ...ENDINGS.map(dueSettlements), dueDraws, dueTallies, dueClaims, dueDeferred];
  for (const find of kinds) yield* await find(db, round);
  yield* await dueStakes(db, round.now, deployment);
}

/** Pages of candidates that a count looks at. Strangers' escrows, which the keeper leaves alone, fill pages, too. */
const COUNTED_PAGES = 20;

/**
 * How many settlements have been due for {@link LATE_SECONDS} at `now` and are not in the outbox, among the oldest
 * 20 times {@link CANDIDATES} of each ending.
 */
export async function countLateSettlements(db: Executor, now: number): Promise<number> {
  let count = 0;
  for (const find of ENDINGS.map(dueSettlements)) {
    const round = { now: now - LATE_SECONDS, places: new Map<string, string[]>() };
    for (let page = 0; page < COUNTED_PAGES; page++) {
      count += (await find(db, round)).length;
      if (round.places.size === 0) break;
    }
  }
  return count;
}

interface Walk {
  /** Rows that can be due. An index has them in the order of `key`. */
  candidates: SQL;
  alias: string;
  key: { column: string; type: "numeric" | "text" }[];
  /** Columns of a due row that the operation needs, with the tables that have them. */
  fields: SQL;
  joins?: SQL;
  isDue: SQL;
}

/** The due rows among the next candidates. After the last candidate it begins again. */
async function walk<Row extends object>(
  db: Executor,
  { places }: Round,
  name: string,
  { candidates, alias, key, fields, joins = sql``, isDue }: Walk,
): Promise<Row[]> {
  const as = sql.identifier(alias);
  const keys = key.map(({ column }) => sql`${as}.${sql.identifier(column)}`);
  const columns = sql.join(keys, sql`, `);
  const texts = keys.map((column) => sql`${column}::text`);
  const place = places.get(name);
  const values = key.map(({ type }, i) => sql`${place?.[i]}::${sql.raw(type)}`);
  const after = place === undefined ? sql`true` : sql`(${columns}) > (${sql.join(values, sql`, `)})`;
  const result = await db.execute(sql`
    select ${fields}, (${isDue}) as due, array[${sql.join(texts, sql`, `)}] as key
    from (select ${as}.* from ${candidates} and ${after} order by ${columns} limit ${CANDIDATES}) ${as} ${joins}
    order by ${columns}`);
  const rows = result.rows as (Row & { due: boolean | null; key: string[] })[];
  const last = rows.at(-1);
  if (last !== undefined && rows.length === CANDIDATES) places.set(name, last.key);
  else places.delete(name);
  return rows.filter(({ due }) => due === true);
}

/** By key: Postgres would plan a join over all stored terms. */
const isOurs = (contractId: SQL): SQL => sql`coalesce(
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

const dueSettlements =
  ([phase, column]: (typeof ENDINGS)[number]) =>
  async (db: Executor, round: Round): Promise<NewOperation[]> => {
    const endedAt = sql`c.${sql.identifier(column)}`;
    const rows = await walk<{ escrow: Address }>(db, round, phase, {
      alias: "c",
      candidates: sql`onchain.working_contract c
        where c.phase = ${phase} and not c.settled and ${endedAt} <= ${round.now}`,
      key: [
        { column, type: "numeric" },
        { column: "id", type: "text" },
      ],
      fields: sql`c.id as escrow`,
      // A settlement stored with an action fails with it if the contract has not ended. That does not count as a try.
      isDue: sql`${endedAt} + c.payout_hold <= ${round.now}
        and ${isOurs(sql`c.id`)} and ${notTried(sql`'settle:' || c.id`, { lengthens: HAD_ENDED })}`,
    });
    return rows.map(settleOperation);
  };

/** SQL: whether the contract had ended when the settlement was rejected. */
const HAD_ENDED = sql`reason is distinct from 'WrongStatus'`;

const DISPUTED = {
  alias: "c",
  candidates: sql`onchain.working_contract c where c.phase = 'disputed' and not c.settled`,
  key: [
    { column: "created_at", type: "numeric" },
    { column: "id", type: "text" },
  ],
} satisfies Partial<Walk>;

async function dueDraws(db: Executor, round: Round): Promise<NewOperation[]> {
  // A draw too late for its seed block drew no one. The key changes hourly, so it is retried within the hour.
  // The index can be ahead of the clock by a block.
  const age = sql`greatest(${round.now} - c.disputed_at, 0)`;
  const key = sql`'draw:' || c.id || ':' || floor(${age} / ${DRAW_RETRY_SECONDS})`;
  const rows = await walk<{ escrow: Address; onceKey: string }>(db, round, "draws", {
    ...DISPUTED,
    fields: sql`c.id as escrow, ${key} as "onceKey"`,
    isDue: sql`not c.drawn and c.ba_recruit_count > 0 and ${votingClosesAtSql} > ${round.now}
      and ${isOurs(sql`c.id`)} and ${notTried(key)}`,
  });
  return rows.map(drawOperation);
}

const votingClosed = (now: number): SQL => sql`(
  ${votingClosesAtSql} <= ${now}
  or (c.ba_recruit_count > 0 and c.sealed_votes = c.ba_recruit_count))`;

async function dueTallies(db: Executor, round: Round): Promise<NewOperation[]> {
  const rows = await walk<{ escrow: Address }>(db, round, "tallies", {
    ...DISPUTED,
    fields: sql`c.id as escrow`,
    isDue: sql`((${votingClosed(round.now)} and c.opened_votes = c.sealed_votes) or ${openingEndsAtSql} <= ${round.now})
      and ${isOurs(sql`c.id`)} and ${notTried(sql`'tally:' || c.id`)}`,
  });
  return rows.map(tallyOperation);
}
/** `offset 0` keeps Postgres from joining whole tables. */
const VOTES = {
  alias: "v",
  joins: sql`join lateral (select * from onchain.working_contract one where one.id = v.contract_id offset 0) c on true`,
  key: [
    { column: "contract_id", type: "text" },
    { column: "backup_agent", type: "text" },
  ],
} satisfies Partial<Walk>;
const UNCLAIMED = sql`onchain.vote v where not v.claimed`;
const DEFERRED = sql`onchain.vote v where v.reward_deferred`;

async function dueOpenings(db: Executor, round: Round): Promise<NewOperation[]> {
  const rows = await walk<{ escrow: Address; backupAgent: Address; votes: number; salt: Hex }>(
    db,
    round,
    "openings",
    {
      ...VOTES,
      candidates: UNCLAIMED,
      joins: sql`${VOTES.joins}
        left join lateral (
          select * from app.sealed_vote one where one.contract_id = v.contract_id
            and one.backup_agent = v.backup_agent and one.commitment = v.commitment offset 0) mine on true`,
      fields: sql`v.contract_id as escrow, v.backup_agent as "backupAgent", mine.votes, mine.salt`,
      isDue: sql`v.votes is null and mine.votes is not null
        and c.phase = 'disputed' and not c.settled and ${votingClosed(round.now)} and ${openingEndsAtSql} > ${round.now}
        and ${notTried(sql`'open-vote:' || c.id || ':' || v.backup_agent`)}`,
    },
  );
  return rows.map(openVoteOperation);
}

/** Payouts to voters and, once a day, rewards deferred by the daily mint cap. */
async function dueClaims(db: Executor, round: Round): Promise<NewOperation[]> {
  const day = String(Math.floor(round.now / DAY));
  const first = sql`'claim:' || c.id || ':' || v.backup_agent`;
  const rows = [
    ...(await claimsAmong(db, round, "claims", UNCLAIMED, first)),
    ...(await claimsAmong(db, round, "rewards", DEFERRED, sql`${first} || ':' || ${day}::text`)),
  ];
  return rows.map(claimOperation);
}

function claimsAmong(db: Executor, round: Round, name: string, candidates: SQL, onceKey: SQL) {
  return walk<{ escrow: Address; backupAgent: Address; onceKey: string }>(db, round, name, {
    ...VOTES,
    candidates,
    fields: sql`c.id as escrow, v.backup_agent as "backupAgent", ${onceKey} as "onceKey"`,
    isDue: sql`v.votes is not null and c.phase = 'tallied' and c.ended_at + c.payout_hold <= ${round.now}
      and ${isOurs(sql`c.id`)} and ${notTried(onceKey)}`,
  });
}

/** Payouts that the token refused. Each that succeeds begins a new key, because the payee can be refused again. */
async function dueDeferred(db: Executor, round: Round): Promise<NewOperation[]> {
  const onceKey = sql`'claim-deferred:' || d.contract_id || ':' || d.payee || ':' || (
    select count(*) from app.operation paid
    where paid.escrow = d.contract_id and paid.kind = 'claim-deferred' and paid.state in ('mined', 'final'))`;
  const rows = await walk<{ escrow: Address; payee: Address; onceKey: string }>(db, round, "deferred", {
    alias: "d",
    candidates: sql`onchain.deferred_payout d where d.amount > 0`,
    key: [
      { column: "amount", type: "numeric" },
      { column: "contract_id", type: "text" },
      { column: "payee", type: "text" },
    ],
    fields: sql`d.contract_id as escrow, d.payee, ${onceKey} as "onceKey"`,
    isDue: sql`${isOurs(sql`d.contract_id`)}
      and ${notTried(onceKey, { retrySeconds: DEFERRED_RETRY_SECONDS, maxSeconds: DEFERRED_MAX_SECONDS })}`,
  });
  return rows.map(claimDeferredOperation);
}

/** Stakes of this service's agents whose unbonding has ended. The key includes the time, so a later stake of the same agent gets a new key. */
async function dueStakes(db: Executor, now: number, deployment: Deployment): Promise<NewOperation[]> {
  const onceKey = sql`'withdraw-stake:' || s.agent || ':' || s.releasable_at`;
  const { rows } = await db.execute<{ agent: Address; onceKey: string }>(
    sql`select s.agent, ${onceKey} as "onceKey" from onchain.stake s
      where s.releasable_at <= ${now}
        and coalesce(${lockedUntil(sql`s.agent`)}, 0) <= ${now}
        and ${notTried(onceKey)}
        and exists (select 1 from app.operation o where o.caller = s.agent and (
          (o.kind = 'stake' and o.state in ('mined', 'final')) or o.kind = 'request-unstake'))
      order by s.releasable_at, s.agent limit ${LIMIT}`,
  );
  return rows.map((row) => withdrawStakeOperation({ deployment, ...row }));
}

/**
 * SQL: no pending or done operation has this key, and its last rejection is long enough ago: longer with each rejection
 * that `lengthens` the wait. Evaluated per row by key: Postgres would turn `not exists` into a join with every operation
 * ever stored.
 */
function notTried(
  onceKey: SQL,
  { retrySeconds = RETRY_SECONDS, maxSeconds = DAY, lengthens = sql`true` } = {},
): SQL {
  return sql`(
    select o.id from app.operation o where o.once_key = ${onceKey} and o.state <> 'rejected' limit 1) is null
    and coalesce((
      select max(r.created_at) + make_interval(secs => least(${retrySeconds} * power(2, greatest(
        count(*) filter (where ${lengthens}) - 1, 0)), ${maxSeconds}))
      from (
        select created_at, reason from app.operation where once_key = ${onceKey} order by id desc limit ${MAX_RETRY_DOUBLINGS}
      ) r), '-infinity') <= now()`;
}
