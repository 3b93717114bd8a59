/** Fields that several bodies share: times, bytes, and objects that are stored as given. */
import { z } from "@hono/zod-openapi";
import type { Hex } from "@working-contracts/protocol/types";

/** Bytes in a response. */
export const HexViewSchema = z.string().regex(/^0x([0-9a-f]{2})*$/) as unknown as z.ZodType<Hex>;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const WITH_ZONE = "must be an RFC 3339 time with seconds and a zone, such as 2026-01-31T12:00:00Z";

/** A time to the millisecond; finer digits are cut off. */
export const TimestampSchema = z
  .string()
  .transform((text) => text.toUpperCase())
  .pipe(
    z
      .string()
      .regex(RFC_3339, WITH_ZONE)
      .pipe(z.iso.datetime({ offset: true, error: WITH_ZONE })),
  )
  .transform((text) => new Date(text))
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
