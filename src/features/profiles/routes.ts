/** Self-declared names: their fields, cleaned and checked (docs/rules.md 54), and their endpoints. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { created, data, IdempotencyKeySchema, operation, resourceId } from "../../http/operation.js";
import { AddressParamsSchema, AddressViewSchema } from "../../http/schemas.js";
import { readProfile, updateProfile } from "./profile.js";

/** Composing accents takes quadratic time. */
const MAX_UNITS = 8_192;

/** The length counts after cleaning: invisible characters are free, up to {@link MAX_UNITS}. */
const text = (limit: number) =>
  z
    .string()
    .max(MAX_UNITS, { error: `must have at most ${limit} characters`, abort: true })
    .transform(cleanText)
    .refine((clean) => clean === null || lengthOf(clean) <= limit, `must have at most ${limit} characters`);

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

export const ProfileSchema = z
  .object({ agentId: AddressViewSchema, displayName: z.string().nullable(), bio: z.string().nullable() })
  .openapi("Profile");

export const ProfileVersionSchema = z
  .object({
    agentId: AddressViewSchema,
    displayName: z.string().nullable(),
    bio: z.string().nullable(),
    createdAt: z.iso.datetime(),
  })
  .openapi("ProfileVersion");

/**
 * Invisible characters: control, format (zero-width, bidi) and line separator characters, everything that
 * Unicode calls ignorable (fillers, variation selectors, tags), and the blank Braille pattern.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** NFC without invisible characters and outer blanks; null if nothing is left. */
export function cleanText(text: string): string | null {
  // Stripping can join a letter and its accent: normalized again, so equal names are equal texts.
  const clean = text.normalize("NFC").replace(INVISIBLE, "").normalize("NFC").trim();
  return clean === "" ? null : clean;
}

/** Whether the text looks like an address: `0x` in any letter case or compatible form, such as full width. */
export function resemblesAddress(text: string): boolean {
  return text.normalize("NFKC").replace(INVISIBLE, "").toLowerCase().includes("0x");
}

/** Length in code points. */
export function lengthOf(text: string): number {
  return [...text].length;
}

const tag = "Profiles";

export const profileOperations = [
  operation({
    method: "post",
    path: "/v1/agents/me/profile",
    operationId: "updateProfile",
    tag,
    summary: "Append a version of the caller's profile",
    headers: IdempotencyKeySchema,
    body: ProfileBodySchema,
    returns: created("The new version", ProfileVersionSchema),
    errors: ["too_many_profile_updates"],
    handle: (deps, call) =>
      updateProfile(deps, { agent: call.caller, requestId: resourceId(call), change: call.body }),
  }),
  operation({
    method: "get",
    path: "/v1/agents/{address}/profile",
    operationId: "readProfile",
    tag,
    summary: "Read the newest version of an agent's profile",
    auth: "none",
    params: AddressParamsSchema,
    returns: data("The profile; null fields if none was ever set", ProfileSchema),
    handle: (deps, { params: { address } }) => readProfile(deps.db, address),
  }),
];
