/** Matches new log events to webhooks. One reader serves them all, so a webhook without matches costs nothing. */
import { eq, sql } from "drizzle-orm";
import { ADVISORY_LOCKS } from "../db/advisory-locks.js";
import type { Database } from "../db/client.js";
import { eventLog, eventReader } from "../db/schema.js";

const READER = "webhooks";
/** Events per round. */
const BATCH = 200n;

/** Marks the webhooks that match the next events, one process at a time. Returns whether there is more. */
export async function matchRound(db: Database): Promise<boolean> {
  if (!(await isBehind(db))) return false;
  return db.transaction(async (tx) => {
    const { rows } = await tx.execute<{ taken: boolean }>(
      sql`select pg_try_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching}) as taken`,
    );
    if (rows[0]?.taken !== true) return false;
    await tx.insert(eventReader).values({ name: READER, position: 0n }).onConflictDoNothing();
    const [reader] = await tx.select().from(eventReader).where(eq(eventReader.name, READER));
    const [log] = await tx.select().from(eventLog).where(eq(eventLog.id, 1));
    if (reader === undefined || log === undefined || log.lastPosition <= reader.position) return false;

    const after = reader.position;
    const end = log.lastPosition < after + BATCH ? log.lastPosition : after + BATCH;
    await tx.execute(sql`
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
        sent_up_to = case when w.sent_up_to >= w.wanted_up_to then span.first - 1 else w.sent_up_to end,
        wanted_up_to = greatest(w.wanted_up_to, span.last),
        next_attempt_at = least(w.next_attempt_at, greatest(now(), w.paused_until))
      from span where w.id = span.id`);
    await tx.update(eventReader).set({ position: end }).where(eq(eventReader.name, READER));
    return end < log.lastPosition;
  });
}

/** Runs many times a second, so it reads two rows and opens no transaction. */
async function isBehind(db: Database): Promise<boolean> {
  const { rows } = await db.execute<{ behind: boolean }>(sql`
    select log.last_position > coalesce(reader.position, 0) as behind
    from app.event_log log left join app.event_reader reader on reader.name = ${READER} where log.id = 1`);
  return rows[0]?.behind ?? false;
}

const wants = sql`w.disabled_at is null
  and e.position > w.sent_up_to
  and (w.contract_id is null or w.contract_id = e.contract_id)
  and (w.types is null or e.type = any(w.types))
  and (e.visible_to is null or w.owner = any(e.visible_to))`;

/** New `wanted_up_to` of a webhook that was behind, idle or disabled: its own turns then scan the log to the end. */
export const wakeSql = sql`greatest(wanted_up_to, (select coalesce(max(last_position), 0) from app.event_log))`;
