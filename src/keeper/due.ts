/** What is due by the chain's clock: bounded queries over the index, without what the outbox already holds. */
import { type SQL, sql } from "drizzle-orm";
import type { Deployment } from "../chain/deployment.js";
import type { Executor } from "../db/client.js";
import type { Address, Hex } from "../protocol/types.js";
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

/** Acts of one kind that are found in one round; the next round finds the rest. */
const LIMIT = 100;
/** Voters have a day to open their votes; the keeper opens those that the service sealed. */
const OPENING_PERIOD = 86_400;
const DAY = 86_400;

/** A rejected act comes again after this many seconds, doubled with each rejection, up to a day. */
const RETRY_SECONDS = 30;
/** A payee that the token refuses is seldom accepted a minute later. */
const DEFERRED_RETRY_SECONDS = 3600;
const MAX_RETRY_DOUBLINGS = 10;

/** All that is due at `now` (seconds on the chain's clock), oldest first within each kind. */
export async function findDue(
  db: Executor,
  { now, deployment }: { now: number; deployment: Deployment },
): Promise<NewOperation[]> {
  const kinds = [dueSettlements, dueDraws, dueOpenings, dueTallies, dueClaims, dueDeferred];
  const due: NewOperation[] = [];
  for (const find of kinds) due.push(...(await find(db, now)));
  due.push(...(await dueStakes(db, now, deployment)));
  return due;
}

async function dueSettlements(db: Executor, now: number): Promise<NewOperation[]> {
  const endedAt = sql`case c.phase
    when 'created' then c.match_deadline
    when 'matched' then c.delivery_deadline
    when 'delivered' then c.review_deadline
    else c.ended_at end`;
  const rows = await find<{ escrow: Address }>(
    db,
    sql`select c.id as escrow from onchain.working_contract c
      where not c.settled
        and c.phase in ('created', 'matched', 'delivered', 'approved', 'tallied', 'declined', 'cancelled', 'withdrawn')
        and ${endedAt} + c.payout_hold <= ${now}
        and ${notTried(sql`'settle:' || c.id`)}
      order by ${endedAt}, c.id limit ${LIMIT}`,
  );
  return rows.map(settleOperation);
}

async function dueDraws(db: Executor, now: number): Promise<NewOperation[]> {
  const rows = await find<{ escrow: Address }>(
    db,
    sql`select c.id as escrow from onchain.working_contract c
      where c.phase = 'disputed' and not c.settled and not c.drawn and c.ba_recruit_count > 0
        and c.disputed_at + c.ba_voting_window > ${now}
        and ${notTried(sql`'draw:' || c.id`)}
      order by c.disputed_at, c.id limit ${LIMIT}`,
  );
  return rows.map(drawOperation);
}

const votingClosed = (now: number): SQL => sql`(
  c.disputed_at + c.ba_voting_window <= ${now}
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
        and c.disputed_at + c.ba_voting_window + ${OPENING_PERIOD} > ${now}
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
          or c.disputed_at + c.ba_voting_window + ${OPENING_PERIOD} <= ${now})
        and ${notTried(sql`'tally:' || c.id`)}
      order by c.disputed_at, c.id limit ${LIMIT}`,
  );
  return rows.map(tallyOperation);
}

/** Payouts of voters, and rewards that a full daily cap put off, once a day. */
async function dueClaims(db: Executor, now: number): Promise<NewOperation[]> {
  const onceKey = sql`'claim:' || c.id || ':' || v.backup_agent
    || case when v.claimed then ':' || ${String(Math.floor(now / DAY))} else '' end`;
  const rows = await find<{ escrow: Address; backupAgent: Address; onceKey: string }>(
    db,
    sql`select c.id as escrow, v.backup_agent as "backupAgent", ${onceKey} as "onceKey"
      from onchain.working_contract c
      join onchain.vote v on v.contract_id = c.id and v.votes is not null and (not v.claimed or v.reward_deferred)
      where c.phase = 'tallied' and c.ended_at + c.payout_hold <= ${now}
        and ${notTried(onceKey)}
      order by c.ended_at, v.position limit ${LIMIT}`,
  );
  return rows.map(claimOperation);
}

async function dueDeferred(db: Executor, now: number): Promise<NewOperation[]> {
  const onceKey = sql`'claim-deferred:' || d.contract_id || ':' || d.payee || ':' || ${String(Math.floor(now / DAY))}`;
  const rows = await find<{ escrow: Address; payee: Address; onceKey: string }>(
    db,
    sql`select d.contract_id as escrow, d.payee, ${onceKey} as "onceKey"
      from onchain.deferred_payout d
      where d.amount > 0 and ${notTried(onceKey, DEFERRED_RETRY_SECONDS)}
      order by d.contract_id, d.payee limit ${LIMIT}`,
  );
  return rows.map(claimDeferredOperation);
}

/** Stakes whose unbonding is over; a later stake of the same agent has another time, and so another key. */
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

/** Until when the votes of `agent` hold its stake in the registry (seconds); SQL null where it never voted. */
export function lockedUntil(agent: SQL): SQL {
  return sql`(
    select max(c.disputed_at + c.ba_voting_window) + ${OPENING_PERIOD}
    from onchain.vote v join onchain.working_contract c on c.id = v.contract_id
    where v.backup_agent = ${agent})`;
}

/** Neither on its way nor done, nor rejected so lately that another try would be too soon. */
function notTried(onceKey: SQL, retrySeconds = RETRY_SECONDS): SQL {
  return sql`not exists (
    select 1 from app.operation o where o.once_key = ${onceKey} and o.state <> 'rejected')
    and coalesce((
      select max(r.created_at) + make_interval(secs => least(${retrySeconds} * power(2, count(*) - 1), ${DAY}))
      from (
        select created_at from app.operation where once_key = ${onceKey} order by id desc limit ${MAX_RETRY_DOUBLINGS}
      ) r), '-infinity') <= now()`;
}

async function find<Row extends object>(db: Executor, query: SQL): Promise<Row[]> {
  const { rows } = await db.execute(query);
  return rows as Row[];
}
