/** GET /v1/agents/{address}/profile. */

import type { Address } from "@working-contracts/protocol/types";
import { desc, eq } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { profile } from "../../db/schema.js";

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
