/** Fields that several endpoints share: addresses, times, bytes, objects stored as given, pages of a list. */
import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";

/** Text that `parse` can read: it returns null to refuse it with `message`. */
export const parsed = <T>(parse: (text: string) => T | null, message: string, ifNoText?: string) =>
  z.string(ifNoText).transform((text, context) => {
    const value = parse(text);
    if (value !== null) return value;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

/** Arguments of `refine`: a maximum of letters as people count them, not UTF-16 units. */
export const upTo = (limit: number) =>
  [(text: string) => [...text].length <= limit, `must have at most ${limit} characters`] as const;

/** Bytes in a response. */
export const HexViewSchema = z.string().regex(/^0x([0-9a-f]{2})*$/) as unknown as z.ZodType<Hex>;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const WITH_ZONE = "must be an RFC 3339 time with seconds and a zone, such as 2026-01-31T12:00:00Z";

/** The text of a time; its letters may be in lower case. */
export const TimeTextSchema = z
  .string()
  .transform((text) => text.toUpperCase())
  .pipe(
    z
      .string()
      .regex(RFC_3339, WITH_ZONE)
      .pipe(z.iso.datetime({ offset: true, error: WITH_ZONE })),
  );

/** A time to the millisecond; finer digits are cut off. */
export const TimestampSchema = TimeTextSchema.transform((text) => new Date(text))
  // Postgres has no year 0, and nothing here is older than the service.
  .refine((date) => date.getTime() >= 0, "must not be before 1970")
  .openapi({ type: "string", format: "date-time", example: "2026-01-31T12:00:00.000Z" });

/** Any JSON object up to `maxBytes`, passed through unchanged: a parsed copy would lose a key like `__proto__`. */
export const JsonObjectSchema = (maxBytes: number) =>
  z
    .custom<Record<string, unknown>>(
      (value) => typeof value === "object" && value !== null && !Array.isArray(value),
      "must be a JSON object",
    )
    .refine(
      (value) => Buffer.byteLength(JSON.stringify(value)) <= maxBytes,
      `must be at most ${maxBytes} bytes of JSON`,
    )
    .openapi({ type: "object", additionalProperties: true });

const EXAMPLE = "0x52908400098527886e0f7030069857d2e4169ee7";

/** An on-chain address in any letter case; the output is lower case. */
export const AddressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "must be an address: 0x and 40 hex digits")
  .transform((address) => address.toLowerCase() as Address)
  .openapi({ type: "string", pattern: "^0x[0-9a-fA-F]{40}$", example: EXAMPLE });

/** An address in a response. */
export const AddressViewSchema = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .openapi({ example: EXAMPLE }) as unknown as z.ZodType<Address>;

export const AddressParamsSchema = z.object({
  address: AddressSchema.openapi({ param: { name: "address", in: "path" } }),
});

/** Length of a page, as text. */
export const LimitSchema = parsed((text) => {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= LIMITS.maxPageSize ? limit : null;
}, `must be a whole number from 1 to ${LIMITS.maxPageSize}`).openapi({
  type: "integer",
  minimum: 1,
  maximum: LIMITS.maxPageSize,
});

/** `limit` and `cursor` of a list whose cursors are ids. */
export const PageQuerySchema = z.object({
  limit: LimitSchema.optional(),
  cursor: z.string().min(1).max(100).optional().openapi({ description: "nextCursor of the previous page" }),
});

/** Body of a short list: everything, or one page if `limit` or `cursor` was given. */
export const listOf = <T extends z.ZodType>(schema: T) =>
  z.object({
    data: z.array(schema),
    nextCursor: z
      .string()
      .nullable()
      .optional()
      .openapi({ description: "Only with limit or cursor, or if there is more" }),
  });

/** A page of a list whose cursors are ids. */
export interface Page<T> {
  data: T[];
  nextCursor: string | null;
}

/** The page of `items`. They were read with a limit one higher, to see whether there are more. */
export function pageOf<T extends { id: string }>(items: T[], limit: number): Page<T> {
  const data = items.slice(0, limit);
  return { data, nextCursor: data.length < items.length ? (data.at(-1)?.id ?? null) : null };
}

/** A short list's body: `nextCursor` only if the caller asked for pages, or if there is more. */
export function shortList<T>(
  query: { limit?: number | undefined; cursor?: string | undefined },
  { data, nextCursor }: Page<T>,
): { data: T[]; nextCursor?: string | null } {
  const isWhole = query.limit === undefined && query.cursor === undefined && nextCursor === null;
  return isWhole ? { data } : { data, nextCursor };
}
