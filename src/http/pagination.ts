import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";

/** `limit` and `cursor` of a list whose cursors are ids. */
export const PageQuerySchema = z.object({
  limit: z
    .string()
    .regex(/^\d{1,3}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(1).max(LIMITS.maxPageSize))
    .optional()
    .openapi({ type: "integer", minimum: 1, maximum: LIMITS.maxPageSize }),
  cursor: z.string().min(1).max(100).optional().openapi({ description: "nextCursor of the previous page" }),
});

/** Body of a short list: everything, or one page if `limit` or `cursor` was given. */
export const listOf = <T extends z.ZodType>(schema: T) =>
  z.object({
    data: z.array(schema),
    nextCursor: z.string().nullable().optional().openapi({ description: "Only with limit or cursor" }),
  });

/** A short list's body: `nextCursor` only if the caller asked for pages. */
export function shortList<T>(
  query: { limit?: number | undefined; cursor?: string | undefined },
  data: T[],
  nextCursor: string | null,
): { data: T[]; nextCursor?: string | null } {
  return query.limit === undefined && query.cursor === undefined ? { data } : { data, nextCursor };
}
