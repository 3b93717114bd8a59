/**
 * Enqueues actions that become due with time alone: settlements, draws, openings, tallies, claims, unbonded stakes. A
 * convenience: statuses are correct without it, and anyone may make the same calls. Due actions are found by the chain's
 * clock, in bounded queries on the index, minus actions already in the outbox.
 */

import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { type SQL, sql } from "drizzle-orm";
import type { BaseLogger } from "pino";
import type { ChainClock } from "../chain/clock.js";
import type { Database, Executor } from "../db/client.js";
import { lockedUntil, openingEndsAtSql, votingClosesAtSql } from "../db/onchain.js";
import { AppError } from "../errors.js";
import { createLoop, type Loop } from "../loop.js";
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
import { enqueue, MAX_QUEUED } from "../relayer/outbox.js";

const MAX_BACKOFF_MS = 30_000;
/** The other half of the queue is left to agents, who cannot wait as long. */
const MAX_QUEUED_BY_KEEPER = MAX_QUEUED / 2;
/** Maximum actions of one kind per round; the next round finds the rest. */
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
}: {
  db: Database;
  clock: Pick<ChainClock, "now">;
  deployment: Deployment;
  logger: Pick<BaseLogger, "info" | "warn">;
  intervalMs: number;
}): Loop {
  return createLoop({
    name: "keeper",
    logger,
    intervalMs,
    maxBackoffMs: MAX_BACKOFF_MS,
    // A full queue: the next round retries.
    isExpected: (error) => error instanceof AppError,
    async round(stopping) {
      for await (const due of findDue(db, { now: clock.now(), deployment })) {
        if (stopping.aborted) return;
        const { operation, existing } = await enqueue(db, due, { maxQueued: MAX_QUEUED_BY_KEEPER });
        if (existing) continue;
        const { kind, escrow } = due;
        logger.info({ kind, escrow, operation: operation.id.toString() }, "keeper: due");
      }
    },
  });
}

/**
 * Yields every action due at `now` (seconds on the chain's clock), kind by kind, oldest first. Only for contracts whose
 * terms this service stores: anyone can create escrows that are due immediately, and anyone may settle them.
 */
export async function* findDue(
  db: Executor,
  { now, deployment }: { now: number; deployment: Deployment },
): AsyncGenerator<NewOperation, void> {
  // Openings first: only they fail permanently if they are late.
  const kinds = [dueOpenings, dueSettlements, dueDraws, dueTallies, dueClaims, dueDeferred];
  for (const find of kinds) yield* await find(db, now);
  yield* await dueStakes(db, now, deployment);
}

/** A subquery, because Postgres would plan a join over all stored terms. */
const isOurs = (contractId: SQL): SQL =>
  sql`(select t.id from app.terms t where t.id = ${contractId}) is not null`;

/** Phases that end automatically at a deadline, and phases that an action ended. */
const ENDINGS = [
  { phases: ["created"], endedAt: sql`c.match_deadline` },
  { phases: ["matched"], endedAt: sql`c.delivery_deadline` },
  { phases: ["delivered"], endedAt: sql`c.review_deadline` },
  { phases: ["approved", "tallied", "declined", "cancelled", "withdrawn"], endedAt: sql`c.ended_at` },
];

async function dueSettlements(db: Executor, now: number): Promise<NewOperation[]> {
  const due: { escrow: Address }[] = [];
  for (const { phases, endedAt } of ENDINGS) {
    // Redundant, but an index can use only the first bound.
    const rows = await find<{ escrow: Address }>(
      db,
      sql`select c.id as escrow from onchain.working_contract c
        where not c.settled and c.phase in ${phases}
          and ${endedAt} <= ${now} and ${endedAt} + c.payout_hold <= ${now}
          and ${isOurs(sql`c.id`)}
          and ${notTried(sql`'settle:' || c.id`)}
        order by ${endedAt}, c.id limit ${LIMIT}`,
    );
    due.push(...rows);
  }
  return due.map(settleOperation);
}

async function dueDraws(db: Executor, now: number): Promise<NewOperation[]> {
  // A draw too late for its seed block drew no one. The key changes hourly, so it is retried within the hour.
  const key = sql`'draw:' || c.id || ':' || floor((${now} - c.disputed_at) / ${DRAW_RETRY_SECONDS})`;
  const rows = await find<{ escrow: Address; onceKey: string }>(
    db,
    sql`select c.id as escrow, ${key} as "onceKey" from onchain.working_contract c
      where c.phase = 'disputed' and not c.settled and not c.drawn and c.ba_recruit_count > 0
        and ${votingClosesAtSql} > ${now}
        and ${isOurs(sql`c.id`)}
        and ${notTried(key)}
      order by c.disputed_at, c.id limit ${LIMIT}`,
  );
  return rows.map(drawOperation);
}

const votingClosed = (now: number): SQL => sql`(
  ${votingClosesAtSql} <= ${now}
  or (c.ba_recruit_count > 0 and c.sealed_votes = c.ba_recruit_count))`;

async function dueOpenings(db: Executor, now: number): Promise<NewOperation[]> {
  const rows = await find<{ escrow: Address; backupAgent: Address; votes: number; salt: Hex }>(
    db,
    sql`select c.id as escrow, v.backup_agent as "backupAgent", mine.votes, mine.salt
      from onchain.working_contract c
      join onchain.vote v on v.contract_id = c.id and v.votes is null
      join app.sealed_vote mine on mine.contract_id = c.id and mine.backup_agent = v.backup_agent
        and mine.commitment = v.commitment
      where c.phase = 'disputed' and not c.settled and ${votingClosed(now)}
        and ${openingEndsAtSql} > ${now}
        and ${notTried(sql`'open-vote:' || c.id || ':' || v.backup_agent`)}
      order by c.disputed_at, v.position limit ${LIMIT}`,
  );
  return rows.map(openVoteOperation);
}

async function dueTallies(db: Executor, now: number): Promise<NewOperation[]> {
  const rows = await find<{ escrow: Address }>(
    db,
    sql`select c.id as escrow from onchain.working_contract c
      where c.phase = 'disputed' and not c.settled
        and ((${votingClosed(now)} and c.opened_votes = c.sealed_votes)
          or ${openingEndsAtSql} <= ${now})
        and ${isOurs(sql`c.id`)}
        and ${notTried(sql`'tally:' || c.id`)}
      order by c.disputed_at, c.id limit ${LIMIT}`,
  );
  return rows.map(tallyOperation);
}

/** Payouts to voters and, once a day, rewards deferred by the daily mint cap. */
async function dueClaims(db: Executor, now: number): Promise<NewOperation[]> {
  const day = String(Math.floor(now / DAY));
  const first = sql`'claim:' || c.id || ':' || v.backup_agent`;
  const rows = [
    ...(await claimsOf(db, now, sql`not v.claimed`, first)),
    ...(await claimsOf(db, now, sql`v.reward_deferred and v.claimed`, sql`${first} || ':' || ${day}::text`)),
  ];
  return rows.map(claimOperation);
}

function claimsOf(db: Executor, now: number, isOpen: SQL, onceKey: SQL) {
  return find<{ escrow: Address; backupAgent: Address; onceKey: string }>(
    db,
    sql`select c.id as escrow, v.backup_agent as "backupAgent", ${onceKey} as "onceKey"
      from onchain.vote v
      join onchain.working_contract c on c.id = v.contract_id
      where ${isOpen} and v.votes is not null and c.phase = 'tallied' and c.ended_at + c.payout_hold <= ${now}
        and ${isOurs(sql`c.id`)}
        and ${notTried(onceKey)}
      order by c.ended_at, v.position limit ${LIMIT}`,
  );
}

/** Payouts that the token refused. Each that succeeds begins a new key, because the payee can be refused again. */
async function dueDeferred(db: Executor): Promise<NewOperation[]> {
  const onceKey = sql`'claim-deferred:' || d.contract_id || ':' || d.payee || ':' || (
    select count(*) from app.operation paid
    where paid.escrow = d.contract_id and paid.kind = 'claim-deferred' and paid.state in ('mined', 'final'))`;
  const rows = await find<{ escrow: Address; payee: Address; onceKey: string }>(
    db,
    sql`select d.contract_id as escrow, d.payee, ${onceKey} as "onceKey"
      from onchain.deferred_payout d
      where d.amount > 0 and ${isOurs(sql`d.contract_id`)} and ${notTried(onceKey, DEFERRED_RETRY_SECONDS, DEFERRED_MAX_SECONDS)}
      order by d.contract_id, d.payee limit ${LIMIT}`,
  );
  return rows.map(claimDeferredOperation);
}

/** Stakes whose unbonding has ended. The key includes the time, so a later stake of the same agent gets a new key. */
async function dueStakes(db: Executor, now: number, deployment: Deployment): Promise<NewOperation[]> {
  const onceKey = sql`'withdraw-stake:' || s.agent || ':' || s.releasable_at`;
  const rows = await find<{ agent: Address; onceKey: string }>(
    db,
    sql`select s.agent, ${onceKey} as "onceKey" from onchain.stake s
      where s.releasable_at <= ${now}
        and coalesce(${lockedUntil(sql`s.agent`)}, 0) <= ${now}
        and ${notTried(onceKey)}
      order by s.releasable_at, s.agent limit ${LIMIT}`,
  );
  return rows.map((row) => withdrawStakeOperation({ deployment, ...row }));
}

/**
 * SQL: no pending or done operation has this key, and its last rejection is long enough ago. Evaluated per row by key:
 * Postgres would turn `not exists` into a join with every operation ever stored.
 */
function notTried(onceKey: SQL, retrySeconds = RETRY_SECONDS, maxSeconds = DAY): SQL {
  return sql`(
    select o.id from app.operation o where o.once_key = ${onceKey} and o.state <> 'rejected' limit 1) is null
    and coalesce((
      select max(r.created_at) + make_interval(secs => least(${retrySeconds} * power(2, count(*) - 1), ${maxSeconds}))
      from (
        select created_at from app.operation where once_key = ${onceKey} order by id desc limit ${MAX_RETRY_DOUBLINGS}
      ) r), '-infinity') <= now()`;
}

async function find<Row extends object>(db: Executor, query: SQL): Promise<Row[]> {
  const { rows } = await db.execute(query);
  return rows as Row[];
}
