/** Deletes what no one needs any longer, in bounded batches. docs/limits.md lists every table with its bound. */
import { LIMITS } from "@working-contracts/protocol/limits";
import { type SQL, sql } from "drizzle-orm";
import type { BaseLogger } from "pino";
import type { Database } from "../db/client.js";
import { indexedTime, isIndexWhole } from "../db/onchain.js";
import { hasOutcomeOnChain } from "../db/schema.js";
import { UNEARNED } from "../relayer/gas-accounts.js";
import { createLoop, type Loop } from "../scheduling.js";

const INTERVAL_MS = 60_000;
const MAX_BACKOFF_MS = 600_000;
/** Rows of one table per statement. */
const BATCH = 500;
/** A request that found an attempt's texts has ended after this time (seconds). */
const REQUEST_SECONDS = 600;

const ATTEMPT_SECONDS = LIMITS.pendingAttemptLifetime + REQUEST_SECONDS;
/** A request can quote an attempt again until its row is deleted: the deletion looks at the age as well. */
const isExpired = sql`first_quoted_at < now() - make_interval(secs => ${ATTEMPT_SECONDS})`;
/** Its escrow can have been opened without this service. */
const isIndexed = sql`${indexedTime} > extract(epoch from first_quoted_at) + ${ATTEMPT_SECONDS}`;

/** Of deleted webhooks. */
const withRetries = sql`, retries as (delete from app.webhook_retry where webhook_id in (select id from gone))`;

/** Each changes at most {@link BATCH} rows of its table and returns them. Ages are by the database's clock. */
const PURGES: SQL[] = [
  purge("api_key", "id", sql`revoked_at < now() - interval '90 days'`),
  purge("key_release", "id", sql`released_at < now() - interval '1 year'`),
  purge(
    "gas_account",
    "address",
    sql`earned = 0 and owed_at < now() - interval '7 days' and address <> ${UNEARNED}`,
  ),
  // Rejected before it was signed for broadcast, it cost nothing. The keeper counts those that no agent asked for, to
  // try less often; not the settlements that were refused with their action, of which anyone can have any number stored.
  purge(
    "operation",
    "id",
    sql`state = 'rejected' and published_at is null and updated_at < now() - interval '1 day'
      and (caller is not null or reason = 'WrongStatus' or updated_at < now() - interval '30 days')`,
  ),
  sql`
    with gone as (${purge("webhook", "id", sql`disabled_at < now() - interval '90 days'`)})
    ${withRetries}
    select id from gone`,
  // From here on they need the index.
  purgeIdle("profile", "agent", sql`created_at < now() - interval '90 days'`),
  purgeIdle(
    "webhook",
    "owner",
    sql`disabled_at is null and created_at < now() - interval '90 days'
      and (last_success_at is null or last_success_at < now() - interval '90 days')`,
    withRetries,
  ),
  // An escrow that a stranger opened is an open contract; a pending creation becomes one.
  // For `exists`, Postgres can decide to read the whole of the other table.
  sql`
    with candidates as (
      select * from (
        select t.id, t.first_quoted_at,
          (select true from onchain.working_contract c where c.id = t.id and c.phase <> 'none') as is_open,
          (select true from app.operation o
            where o.escrow = t.id and o.kind = 'create' and o.state <> 'rejected' limit 1) as is_live
        from app.terms t
        where t.opened_at is null and ${isIndexWhole}
          and ${isExpired} and ${isIndexed}) unopened
      where is_open or is_live is null
      order by first_quoted_at limit ${BATCH}),
    opened as (update app.terms set opened_at = now() where id in (select id from candidates where is_open)),
    dropped as (
      delete from app.terms where id in (select id from candidates where is_open is null) and ${isExpired}
      returning id, caller, body_hash, escrow_terms),
    unsealed as (delete from app.reference_key where contract_id in (select id from dropped)),
    remembered as (
      insert into app.expired_attempt (id, caller, body_hash, escrow_terms)
      select id, caller, body_hash, escrow_terms from dropped
      on conflict (id) do update set expired_at = now())
    select id from candidates`,
  // A payment can arrive late, and is refunded by opening its escrow. Clients sign for minutes; after a month the same
  // bytes still lead to the same address, unless the protocol's parameters have changed. By these rows the keeper knows
  // escrows that strangers opened.
  purge(
    "expired_attempt",
    "id",
    sql`expired_at < now() - interval '30 days' and ${isIndexWhole} and not exists (
      select 1 from onchain.working_contract c
      where c.id = app.expired_attempt.id and c.phase <> 'none' and not c.settled)
      and not exists (
        select 1 from onchain.deferred_payout d where d.contract_id = app.expired_attempt.id and d.amount > 0)`,
  ),
];

function purge(table: string, key: string, isOld: SQL): SQL {
  const name = sql`app.${sql.identifier(table)}`;
  const id = sql.identifier(key);
  // A row can change while the statement waits for it: the deletion looks at its age again.
  return sql`delete from ${name} where ${id} in (select ${id} from ${name} where ${isOld} limit ${BATCH})
    and ${isOld} returning ${id}`;
}

/** Deletes old rows of addresses without stake that never had a contract, vote or relayed operation; marks others. */
function purgeIdle(table: string, owner: string, isOld: SQL, also = sql``): SQL {
  const name = sql`app.${sql.identifier(table)}`;
  const address = sql`old.${sql.identifier(owner)}`;
  return sql`
    with candidates as (
      select id, coalesce(
        (select true from onchain.working_contract c where c.client = ${address} limit 1),
        (select true from onchain.working_contract c where c.worker = ${address} limit 1),
        (select true from onchain.stake s where s.agent = ${address} limit 1),
        (select true from onchain.vote v where v.backup_agent = ${address} limit 1),
        (select true from app.operation o where o.caller = ${address} and o.signed and ${hasOutcomeOnChain} limit 1),
        (select true from app.operation o
          where o.caller = ${address} and o.state <> 'rejected' and o.nonce is not null and o.response is null limit 1)) as is_kept
      from (
        select * from ${name} where kept_at is null and ${isOld} and ${isIndexWhole} order by created_at limit ${BATCH}) old),
    kept as (update ${name} set kept_at = now() where id in (select id from candidates where is_kept)),
    gone as (
      delete from ${name} where id in (select id from candidates where is_kept is null) and ${isOld} returning id)
    ${also}
    select id from candidates`;
}

/** Any number can run. */
export function createPurger({ db, logger }: { db: Database; logger: Pick<BaseLogger, "warn"> }): Loop {
  return createLoop({
    name: "purge",
    logger,
    intervalMs: INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    round: (stopping) => purgeAll(db, stopping),
  });
}

/**
 * Runs each purge once, whichever fail, until `stopping`. Returns whether any has more to do; if none has, throws the first
 * error.
 */
export async function purgeAll(db: Database, stopping?: AbortSignal): Promise<boolean> {
  let isFull = false;
  const errors: unknown[] = [];
  for (const statement of PURGES) {
    if (stopping?.aborted) break;
    const purged = await db.execute(statement).catch((error) => void errors.push(error));
    isFull ||= purged !== undefined && purged.rows.length >= BATCH;
  }
  if (errors.length > 0 && !isFull) throw errors[0];
  return isFull;
}
