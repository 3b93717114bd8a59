/** Agents' self-descriptions: versions are only added, and the newest one counts. */
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, count, desc, eq, gt, min, sql } from "drizzle-orm";
import type { Executor, Transaction } from "../../db/client.js";
import { profile } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";

export interface ProfileView {
  agentId: Address;
  displayName: string | null;
  bio: string | null;
}

/** The newest version; null fields if none was ever set. */
export async function readProfile(db: Executor, agent: Address): Promise<ProfileView> {
  const newest = await newestProfile(db, agent);
  return { agentId: agent, displayName: newest?.displayName ?? null, bio: newest?.bio ?? null };
}

export async function newestProfile(
  db: Executor,
  agent: Address,
): Promise<typeof profile.$inferSelect | undefined> {
  const [newest] = await db
    .select()
    .from(profile)
    .where(eq(profile.agent, agent))
    .orderBy(desc(profile.id))
    .limit(1);
  return newest;
}

/** Clean text; null clears the field, undefined keeps its value. */
export interface ProfileChange {
  displayName?: string | null | undefined;
  bio?: string | null | undefined;
}

/**
 * Appends a version, or returns the one that a call with the same id has appended. Throws 429 `too_many_profile_updates` beyond 10 versions in any 24 hours. The limit is exact
 * even for concurrent calls on several replicas, because the database's clock decides.
 */
export async function updateProfile(
  { db }: Pick<Deps, "db">,
  { agent, requestId, change }: { agent: Address; requestId: string; change: ProfileChange },
): Promise<ProfileView & { createdAt: string }> {
  return db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`profile:${agent}`}, 0))`);
    const [first] = await tx.select().from(profile).where(eq(profile.requestId, requestId));
    if (first !== undefined) return toVersion(first);
    await assertBelowLimit(tx, agent);
    const current = await newestProfile(tx, agent);
    const [stored] = await tx
      .insert(profile)
      .values({
        agent,
        requestId,
        displayName: change.displayName === undefined ? (current?.displayName ?? null) : change.displayName,
        bio: change.bio === undefined ? (current?.bio ?? null) : change.bio,
        // Not now(): that is the transaction's start, which can be before the wait for the lock.
        createdAt: sql`clock_timestamp()`,
      })
      .returning();
    return toVersion(stored as typeof profile.$inferSelect);
  });
}

function toVersion({ agent, displayName, bio, createdAt }: typeof profile.$inferSelect) {
  return { agentId: agent as Address, displayName, bio, createdAt: createdAt.toISOString() };
}

async function assertBelowLimit(tx: Transaction, agent: Address): Promise<void> {
  const [recent] = await tx
    .select({
      versions: count(),
      secondsLeft: sql<string>`ceil(extract(epoch from ${min(profile.createdAt)} + interval '24 hours' - clock_timestamp()))`,
    })
    .from(profile)
    .where(
      and(eq(profile.agent, agent), gt(profile.createdAt, sql`clock_timestamp() - interval '24 hours'`)),
    );
  if (recent === undefined || recent.versions < LIMITS.profileVersionsPerDay) return;
  const secondsLeft = Math.max(1, Number(recent.secondsLeft));
  throw new AppError("too_many_profile_updates", {
    message: `A profile can change ${LIMITS.profileVersionsPerDay} times in 24 hours; retry in ${secondsLeft} s.`,
    retryable: true,
    retryAfterSeconds: secondsLeft,
  });
}
