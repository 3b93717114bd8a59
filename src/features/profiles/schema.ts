import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { AddressViewSchema } from "../../http/address.js";
import { cleanText, lengthOf, resemblesAddress } from "./clean-text.js";

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
