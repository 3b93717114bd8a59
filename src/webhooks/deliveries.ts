/** Deliveries as rows. One reader of the log serves all webhooks; a leased one is written only while the lease holds. */
import { LIMITS } from "@working-contracts/protocol/limits";
import { and, asc, eq, gte, isNotNull, isNull, lte, type SQL, sql } from "drizzle-orm";
import { ADVISORY_LOCKS, type Database, type Executor } from "../db/client.js";
import { event, eventLog, eventReader, webhook, webhookRetry } from "../db/schema.js";
import { columnsOf, prepare, rowOf } from "../db/statements.js";
import { type EventRow, readPage } from "../events/log.js";

export type WebhookRow = typeof webhook.$inferSelect;

/** Delay after each failed attempt, in seconds: just over three days in total (the Standard Webhooks schedule). */
const RETRY_DELAYS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
const RETRY_SECONDS = RETRY_DELAYS.reduce<number>((sum, delay) => sum + delay, 0);
/** A failing webhook pauses after each attempt. The pause doubles from 2 s up to this. */
const MAX_PAUSE_SECONDS = 600;
/** Maximum abandoned events that stay listed; older ones are deleted. */
const MAX_GIVEN_UP = 100;
/** In milliseconds, the precision of a Date, because a lease is identified by its end. */
const leaseEnd = sql`date_trunc('milliseconds', now() + interval '60 seconds')`;
const isLeased = ({ id, leasedUntil }: WebhookRow): SQL =>
  sql`(id = ${id} and leased_until = ${leasedUntil?.toISOString() ?? null}::timestamptz)`;
const GONE = 410;
const READER = "webhooks";
/** Postgres channel: webhooks have something new to send. */
export const WEBHOOKS_DUE = "webhooks_due";
/** Due webhooks looked at per lease. */
const MAX_DUE = 1_000;
/** A response that takes this long is slow, and marks its webhook as slow for this time. */
const SLOW_SECONDS = 1;
const SLOW_TIME = sql`interval '10 minutes'`;
/** Most log events matched per round. */
const MATCH_BATCH = 200;

export interface DeliveryResult {
  ok: boolean;
  status: number | null;
  error: string | null;
  /** Response time. */
  seconds: number;
}

export interface Task {
  row: EventRow;
  /** Attempts so far; null for an event that the webhook has not been sent yet. */
  attempts: number | null;
}

/**
 * Creates rounds that mark the webhooks which match the next events, one process at a time. A round returns whether
 * there is more. After each that fails the next takes half as many events: they can be too many for one statement.
 */
export function createMatching(db: Database): () => Promise<boolean> {
  const batch = { size: MATCH_BATCH };
  return () =>
    matchRound(db, batch).catch((error: unknown) => {
      batch.size = Math.ceil(batch.size / 2);
      throw error;
    });
}

async function matchRound(db: Database, batch: { size: number }): Promise<boolean> {
  // Runs many times a second, so it reads two rows and opens no transaction.
  const [found] = await readIsBehind(db, {});
  if (found?.behind !== true) return false;
  return db.transaction(async (tx) => {
    // A process that stalls in a round holds up revocations and changes of webhooks, but for less time than they wait.
    const { rows } = await tx.execute<{ taken: boolean }>(sql`
      select set_config('idle_in_transaction_session_timeout', '5s', true),
        pg_try_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching}) as taken`);
    if (rows[0]?.taken !== true) return false;
    await tx.insert(eventReader).values({ name: READER, position: 0n }).onConflictDoNothing();
    const [reader] = await tx.select().from(eventReader).where(eq(eventReader.name, READER));
    const [log] = await tx.select().from(eventLog).where(eq(eventLog.id, 1));
    if (reader === undefined || log === undefined || log.lastPosition <= reader.position) return false;

    const after = reader.position;
    const full = after + BigInt(batch.size);
    const end = log.lastPosition < full ? log.lastPosition : full;
    const { rowCount } = await tx.execute(sql`
      with fresh as (
        select * from app.event where position > ${after.toString()}::bigint and position <= ${end.toString()}::bigint
      ), concerned as (
        select w.id, e.position from fresh e join app.webhook w on w.agent = any(e.agents) where ${wants}
        union
        select w.id, e.position from fresh e join app.webhook w on w.agent is null where ${wants}
      ), span as (
        select id, min(position) as first, max(position) as last from concerned group by id
      )
      update app.webhook w set
        sent_up_to = case when w.sent_up_to >= w.wanted_up_to then greatest(w.sent_up_to, span.first - 1) else w.sent_up_to end,
        wanted_up_to = greatest(w.wanted_up_to, span.last),
        next_attempt_at = least(w.next_attempt_at, greatest(now(), w.paused_until))
      from span where w.id = span.id`);
    batch.size = MATCH_BATCH;
    if (rowCount !== 0) await tx.execute(sql`select pg_notify(${WEBHOOKS_DUE}, '')`);
    await tx.update(eventReader).set({ position: end }).where(eq(eventReader.name, READER));
    return end < log.lastPosition;
  });
}

const readIsBehind = prepare<{ behind: boolean }>(
  "webhooks_behind",
  sql`select log.last_position > coalesce(reader.position, 0) as behind
    from app.event_log log left join app.event_reader reader on reader.name = ${READER} where log.id = 1`,
);

/** Age in seconds, at `now`, of the oldest event in the log that is not matched; 0 if there is none. */
export async function readMatchingLag(db: Executor, now: number): Promise<number> {
  const { rows } = await db.execute<{ lag: number }>(sql`
    select greatest(0, ${now} - extract(epoch from occurred_at))::float8 as lag from app.event
    where position > coalesce((select position from app.event_reader where name = ${READER}), 0)
    order by position limit 1`);
  return rows[0]?.lag ?? 0;
}

const wants = sql`w.disabled_at is null
  and e.position > w.sent_up_to
  and (w.contract_id is null or w.contract_id = e.contract_id)
  and (w.types is null or e.type = any(w.types) or e.type = 'event.reverted' and e.data ->> 'type' = any(w.types))
  and (e.visible_to is null or w.owner = any(e.visible_to))`;

/** New `wanted_up_to` of a webhook that was behind, idle or disabled: its own turns then scan the log to the end. */
export const wakeSql = sql`greatest(wanted_up_to, (select coalesce(max(last_position), 0) from app.event_log))`;

/** A webhook without a success yet, failing, or recently slow is served in the slow lane. */
export type Lane = "fast" | "slow";

const isDue = sql`disabled_at is null and next_attempt_at <= now() and (leased_until is null or leased_until < now())`;
const IN_LANE = {
  fast: sql`failures = 0 and last_success_at is not null and coalesce(slow_until <= now(), true)`,
  slow: sql`(failures > 0 or last_success_at is null or slow_until > now())`,
};
const leaseIn = (lane: Lane) =>
  prepare<Record<string, unknown>>(
    `webhooks_lease_${lane}`,
    sql`
      update app.webhook set leased_until = ${leaseEnd}
      where id in (
        select id from app.webhook where ${isDue} and id in (
          select id from (
            select distinct on (owner) id, next_attempt_at from (
              select id, owner, next_attempt_at from app.webhook
              where ${isDue} and ${IN_LANE[lane]} and owner <> all(${sql.placeholder("except")}::text[])
              order by next_attempt_at limit ${MAX_DUE}) due
            order by owner, next_attempt_at) first
          order by next_attempt_at limit ${sql.placeholder("limit")})
        for update skip locked)
      returning ${columnsOf(webhook)}`,
  );
const leases = { fast: leaseIn("fast"), slow: leaseIn("slow") };

/** SQL: the webhook's events that wait for a retry. */
const isPendingOf = ({ id }: WebhookRow) =>
  and(eq(webhookRetry.webhookId, id), isNotNull(webhookRetry.nextAttemptAt));

/** Leases due webhooks of a lane, longest waiting first: at most one of each owner, and none of those in `except`. */
export async function leaseDue(
  db: Database,
  { lane, limit, except }: { lane: Lane; limit: number; except: readonly string[] },
): Promise<WebhookRow[]> {
  const rows = await leases[lane](db, { limit, except });
  return rows.map((row) => rowOf(webhook, row));
}

/**
 * The next event to send: a due retry, otherwise the next new event. While attempts fail they take turns, because the
 * target can refuse just those that wait. Null if there is nothing to send now.
 */
export async function nextTask(db: Database, hook: WebhookRow): Promise<Task | null> {
  const [retry] = await db
    .select({ row: event, attempts: webhookRetry.attempts })
    .from(webhookRetry)
    .innerJoin(event, eq(event.position, webhookRetry.position))
    .where(and(eq(webhookRetry.webhookId, hook.id), lte(webhookRetry.nextAttemptAt, sql`now()`)))
    .orderBy(asc(webhookRetry.nextAttemptAt), asc(webhookRetry.position))
    .limit(1);
  if (retry !== undefined && hook.failures % 2 === 0) return retry;
  if (
    hook.sentUpTo >= hook.wantedUpTo ||
    (await db.$count(webhookRetry, isPendingOf(hook))) >= LIMITS.webhookRetries
  )
    return retry ?? null;

  const page = await readPage(db, {
    filter: {
      types: hook.types ?? undefined,
      contractId: hook.contractId ?? undefined,
      agent: hook.agent ?? undefined,
    },
    reader: hook.owner,
    after: hook.sentUpTo,
    limit: 1,
    newest: hook.wantedUpTo,
  });
  const [row] = page.rows;
  if (row !== undefined) return { row, attempts: null };
  // The scanned part of the log has nothing for this webhook. A replay continues in another turn.
  const pausedUntil = page.hasMore ? sql`now() + interval '1 second'` : hook.pausedUntil;
  await holdLease(db, hook, { sentUpTo: page.end, pausedUntil });
  return null;
}

/** Stores the outcome of an attempt. Returns the seconds that the webhook now pauses; null if the lease was lost. */
export async function recordOutcome(
  db: Database,
  hook: WebhookRow,
  { task, outcome }: { task: Task; outcome: DeliveryResult },
): Promise<number | null> {
  const position = task.row.position as bigint;
  const moved = task.attempts === null ? { sentUpTo: position } : {};
  const { failingSince } = hook;
  const failures = outcome.ok ? 0 : hook.failures + 1;
  const rest = restSeconds(outcome, failures);
  return db.transaction(async (tx) => {
    // Also if the lease was lost: any change by the owner ends it.
    if (outcome.seconds >= SLOW_SECONDS)
      await tx
        .update(webhook)
        .set({ slowUntil: sql`now() + ${SLOW_TIME}` })
        .where(eq(webhook.id, hook.id));
    const held = await holdLease(tx, hook, {
      ...moved,
      failures,
      lastStatus: outcome.status,
      lastError: outcome.error,
      lastAttemptAt: sql`now()`,
      ...(outcome.ok && { lastSuccessAt: sql`now()` }),
      failingSince: outcome.ok ? null : sql`coalesce(failing_since, now())`,
      pausedUntil: sql`now() + make_interval(secs => ${rest})`,
    });
    if (!held) return null;
    const mine = and(eq(webhookRetry.webhookId, hook.id), eq(webhookRetry.position, position));
    if (outcome.ok) {
      await tx.delete(webhookRetry).where(mine);
      // The target works again: what failed since it last did is due at once. What it refused before keeps its waits,
      // which end with the last attempt, unless so many wait that they would soon stop new events.
      if (failingSince !== null) {
        const isPending = isPendingOf(hook);
        const isCrowded = (await tx.$count(webhookRetry, isPending)) > LIMITS.webhookRetries / 2;
        const isOfOutage = isCrowded ? undefined : gte(webhookRetry.firstAttemptAt, failingSince);
        await tx.update(webhookRetry).set({ nextAttemptAt: sql`now()` }).where(and(isPending, isOfOutage));
      }
    } else {
      await storeRetry(tx, hook.id, { position, attempts: (task.attempts ?? 0) + 1, outcome });
    }
    return rest;
  });
}

/** Releases a webhook and schedules its next turn. */
export async function releaseLease(db: Database, hook: WebhookRow): Promise<void> {
  await db.execute(sql`
    update app.webhook w set leased_until = null,
      next_attempt_at = greatest(
        case when w.wanted_up_to > w.sent_up_to and
            (select count(*) from app.webhook_retry r where r.webhook_id = w.id and r.next_attempt_at is not null) < ${LIMITS.webhookRetries}
          then now()
          else (select min(r.next_attempt_at) from app.webhook_retry r where r.webhook_id = w.id) end,
        case when w.wanted_up_to > w.sent_up_to
          or exists (select 1 from app.webhook_retry r where r.webhook_id = w.id and r.next_attempt_at is not null)
          then w.paused_until end)
    where ${isLeased(hook)}`);
}

/** Releases a webhook without an attempt. It is due again in a second; in the slow lane, whose calls take long, in 2 to 10. */
export async function postpone(db: Database, hook: WebhookRow, lane: Lane): Promise<void> {
  const seconds = lane === "fast" ? sql`1` : sql`2 + 8 * random()`;
  await db
    .update(webhook)
    .set({ leasedUntil: null, nextAttemptAt: sql`now() + make_interval(secs => ${seconds})` })
    .where(isLeased(hook));
}

type Changes = Parameters<ReturnType<Database["update"]>["set"]>[0];

/** Writes and extends the lease if it still holds, and updates `hook` in place. Returns whether it held. */
async function holdLease(db: Executor, hook: WebhookRow, changes: Changes): Promise<boolean> {
  const [held] = await db
    .update(webhook)
    .set({ ...changes, leasedUntil: leaseEnd })
    .where(and(isLeased(hook), isNull(webhook.disabledAt)))
    .returning();
  if (held === undefined) return false;
  Object.assign(hook, held);
  return true;
}

/** A slow target pauses for three times its response time, so that it cannot hold up a share of the concurrency. */
function restSeconds({ ok, seconds }: DeliveryResult, failures: number): number {
  const rest = seconds < SLOW_SECONDS ? 0 : 3 * seconds;
  return ok ? rest : Math.max(rest, Math.min(2 ** failures, MAX_PAUSE_SECONDS));
}

async function storeRetry(
  tx: Executor,
  webhookId: string,
  { position, attempts, outcome }: { position: bigint; attempts: number; outcome: DeliveryResult },
): Promise<void> {
  const delay = RETRY_DELAYS[attempts - 1];
  const changes = {
    attempts,
    nextAttemptAt: delay === undefined ? null : sql`now() + make_interval(secs => ${delay})`,
  };
  await tx
    .insert(webhookRetry)
    .values({ webhookId, position, ...changes })
    .onConflictDoUpdate({ target: [webhookRetry.webhookId, webhookRetry.position], set: changes });
  const isGone = outcome.status === GONE;
  const disabledReason = isGone
    ? "the target responded with 410 Gone"
    : "all attempts over three days failed";
  // Without a success in the time and the number of attempts that one event gets. Few can be days apart.
  const isHopeless = isGone
    ? undefined
    : sql`failing_since <= now() - make_interval(secs => ${RETRY_SECONDS}) and failures > ${RETRY_DELAYS.length}`;
  await tx
    .update(webhook)
    .set({ disabledAt: sql`now()`, disabledReason })
    .where(and(eq(webhook.id, webhookId), isHopeless));
  if (delay !== undefined) return;
  // With nothing left to retry, the next failure is the first of three days.
  const left = sql`select from app.webhook_retry where webhook_id = ${webhookId} and next_attempt_at is not null`;
  await tx
    .update(webhook)
    .set({ failingSince: null })
    .where(and(eq(webhook.id, webhookId), sql`not exists (${left})`));
  await tx.execute(sql`
    delete from app.webhook_retry where webhook_id = ${webhookId} and next_attempt_at is null and position in (
      select position from app.webhook_retry where webhook_id = ${webhookId} and next_attempt_at is null
      order by position desc offset ${MAX_GIVEN_UP})`);
}
