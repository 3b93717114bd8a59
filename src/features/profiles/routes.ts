/** Names and bios that agents give themselves, cleaned and checked (docs/rules.md 54). The newest version counts; none is changed. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address } from "@working-contracts/protocol/types";
import { and, count, desc, eq, gt, min, sql } from "drizzle-orm";
import { type Executor, lock, type Transaction } from "../../db/client.js";
import { profile } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { created, data, endpoints, IdempotencyKeySchema, resourceId } from "../../http/endpoint.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";

/** Composing accents takes quadratic time. */
const MAX_UNITS = 2_048;

/** The length counts after cleaning: invisible characters are free, up to {@link MAX_UNITS}. */
const text = (limit: number) =>
  z
    .string()
    .max(MAX_UNITS, { error: `must have at most ${limit} characters`, abort: true })
    .transform(cleanText)
    .refine((clean) => clean === null || [...clean].length <= limit, `must have at most ${limit} characters`);

export const ProfileBodySchema = z
  .object({
    displayName: text(LIMITS.displayNameLength)
      .refine(
        (name) => name === null || !resemblesAddress(name),
        'must not contain "0x": it could pass for an address',
      )
      .nullish()
      .openapi({ type: ["string", "null"], maxLength: LIMITS.displayNameLength }),
    bio: text(LIMITS.bioLength)
      .nullish()
      .openapi({ type: ["string", "null"], maxLength: LIMITS.bioLength }),
  })
  .openapi("UpdateProfile", {
    description: "An omitted field keeps its value; null clears it. Invisible characters are removed.",
  });

const fields = {
  agentId: AddressViewSchema,
  displayName: z.string().nullable(),
  bio: z.string().nullable(),
};
const ProfileSchema = z.object(fields).openapi("Profile");
type ProfileView = z.infer<typeof ProfileSchema>;

const ProfileVersionSchema = z.object({ ...fields, createdAt: z.iso.datetime() }).openapi("ProfileVersion");

/** Controls, formats (zero-width, bidi), line separators, what Unicode calls ignorable (fillers, tags), the blank Braille pattern. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** NFC without invisible characters and outer blanks; null if nothing is left. */
function cleanText(text: string): string | null {
  // Stripping can join a letter and its accent: normalized again, so equal names are equal texts.
  const clean = text.normalize("NFC").replace(INVISIBLE, "").normalize("NFC").trim();
  return clean === "" ? null : clean;
}

/** Whether the text looks like an address: `0x` in any letter case or compatible form, such as full width. */
function resemblesAddress(text: string): boolean {
  return text.normalize("NFKC").replace(INVISIBLE, "").toLowerCase().includes("0x");
}

/** The newest version; null fields if none was ever set. */
export async function readProfile(db: Executor, agent: Address): Promise<ProfileView> {
  const newest = await newestProfile(db, agent);
  return { agentId: agent, displayName: newest?.displayName ?? null, bio: newest?.bio ?? null };
}

async function newestProfile(db: Executor, agent: Address) {
  const [newest] = await db
    .select()
    .from(profile)
    .where(eq(profile.agent, agent))
    .orderBy(desc(profile.id))
    .limit(1);
  return newest;
}

/** Clean text; null clears the field, undefined keeps its value. */
type ProfileChange = z.output<typeof ProfileBodySchema>;

/**
 * Appends a version, or returns the one that a call with the same id has appended. The limit of versions in any 24 hours
 * is exact, also on several replicas, because the database's clock decides.
 */
async function updateProfile(
  { db }: Pick<Deps, "db">,
  { agent, requestId, change }: { agent: Address; requestId: string; change: ProfileChange },
): Promise<ProfileView & { createdAt: string }> {
  return db.transaction(async (tx) => {
    await lock(tx, `profile:${agent}`);
    const [first] = await tx.select().from(profile).where(eq(profile.requestId, requestId));
    if (first !== undefined) return toVersion(first);
    await requireBelowLimit(tx, agent);
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
  return { agentId: agent, displayName, bio, createdAt: createdAt.toISOString() };
}

async function requireBelowLimit(tx: Transaction, agent: Address): Promise<void> {
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
    retryAfterSeconds: secondsLeft,
  });
}

const { get, post } = endpoints("Profiles");

export const profileEndpoints = [
  post("/v1/agents/me/profile", {
    operationId: "updateProfile",
    summary: "Append a version of the caller's profile",
    headers: IdempotencyKeySchema,
    body: ProfileBodySchema,
    returns: created("The new version", ProfileVersionSchema),
    errors: ["too_many_profile_updates"],
    handle: (deps, call) =>
      updateProfile(deps, { agent: call.caller, requestId: resourceId(call), change: call.body }),
  }),
  get("/v1/agents/{address}/profile", {
    operationId: "readProfile",
    summary: "Read the newest version of an agent's profile",
    auth: "none",
    params: AddressParamsSchema,
    returns: data("The profile; null fields if none was ever set", ProfileSchema),
    handle: (deps, { params: { address } }) => readProfile(deps.db, address),
  }),
];
