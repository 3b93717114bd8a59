/**
 * Fields that several endpoints share, and JSON bodies, parsed once from the raw bytes (docs/decisions.md, "Exact JSON"):
 * `budgetOrPrice` and `amount` at the top level stay text, and no bytes are `{}`. Endpoints without a declared body never
 * parse it. `c.get("rawBody")` are the raw bytes, for hashes.
 */

import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { createMiddleware } from "hono/factory";
import { compareNumber, isLosslessNumber, parse } from "lossless-json";
import { AppError, invalidField } from "../errors.js";
import type { AppEnv } from "./middleware.js";

/** Top-level fields whose numbers stay text. */
const TEXT_NUMBERS = new Set(["budgetOrPrice", "amount"]);

/** Parses the bytes of a request body; throws `invalid_request` saying what is wrong and where. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.length === 0) return {};
  const value = parseText(decode(bytes));
  if (typeof value !== "object" || value === null || Array.isArray(value) || isLosslessNumber(value)) {
    throw fault("", "must be a JSON object");
  }
  const body = value as Record<string, unknown>;
  for (const [key, member] of Object.entries(body)) {
    requireStorable(key, "");
    // The parser defines even `__proto__` as an ordinary property, which an assignment changes.
    body[key] = TEXT_NUMBERS.has(key) && isLosslessNumber(member) ? member.value : convert(member, key, 2);
  }
  return body;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw fault("", "is not valid UTF-8", cause);
  }
}

function parseText(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    // The parser is recursive.
    if (cause instanceof RangeError) throw fault("", TOO_DEEP, cause);
    throw fault("", `is not valid JSON: ${(cause as SyntaxError).message}`, cause);
  }
}

const TOO_DEEP = `is nested deeper than ${LIMITS.bodyDepth} levels`;

/** Replaces LosslessNumbers in place, and refuses values that could not be stored as given. */
function convert(value: unknown, path: string, depth: number): unknown {
  if (typeof value === "string") return requireStorable(value, path);
  if (typeof value !== "object" || value === null) return value;
  if (isLosslessNumber(value)) {
    const number = Number(value.value);
    if (Number.isFinite(number) && compareNumber(value.value, String(number)) === 0) return number;
    throw fault(path, `${value.value.slice(0, 40)} cannot be represented exactly; send it as a string`);
  }
  if (depth > LIMITS.bodyDepth) throw fault("", TOO_DEEP);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = convert(value[i], `${path}.${i}`, depth + 1);
    return value;
  }
  const object = value as Record<string, unknown>;
  for (const [key, member] of Object.entries(object)) {
    requireStorable(key, path);
    object[key] = convert(member, `${path}.${key}`, depth + 1);
  }
  return object;
}

/** In a regular expression with `u`, only a surrogate without its other half matches. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function requireStorable(text: string, path: string): string {
  if (text.includes("\0") || LONE_SURROGATE.test(text)) {
    throw fault(path, "contains a NUL character or half of a surrogate pair");
  }
  return text;
}

function fault(path: string, message: string, cause?: unknown): AppError {
  return new AppError("invalid_request", {
    message: `${path === "" ? "The body" : path} ${message}.`,
    details: [{ path, message }],
    cause,
  });
}

/** Reads the body once, up to `limit` bytes. Parsing waits until a route needs it, so 401 comes before 400. */
export const rawBody = (limit: number) =>
  createMiddleware<AppEnv>(async (c, next) => {
    // Postgres text cannot hold NUL: refused here for every path and query parameter at once.
    if (/%00/.test(c.req.url)) {
      throw new AppError("invalid_request", { message: "The URL contains a NUL character." });
    }
    const { method } = c.req;
    if (method === "GET" || method === "HEAD") return next();
    const bytes = await readBytes(c.req.raw, limit);
    c.set("rawBody", bytes);
    // The router's pattern takes neither blanks before a parameter nor an empty one (RFC 9110 5.6.6).
    const [mediaType = ""] = (c.req.header("content-type") ?? "").split(";");
    if (mediaType.trim().toLowerCase() === "application/json")
      c.req.raw.headers.set("content-type", "application/json");
    // hono reads its cache as a promise, despite its type.
    c.req.bodyCache.arrayBuffer = Promise.resolve(new Uint8Array(bytes).buffer) as never;
    Object.defineProperty(c.req, "json", {
      value: async () => {
        try {
          return parseBody(bytes);
        } catch (error) {
          // hono's validator replaces any error thrown here with an HTTPException; onError reads this instead.
          if (error instanceof AppError) c.set("bodyFault", error);
          throw error;
        }
      },
    });
    await next();
  });

/** Maximum pieces of a body without Content-Length: each costs as much as a kilobyte. */
const MAX_PIECES = 4_096;

async function readBytes(request: Request, limit: number): Promise<Buffer> {
  const announced = request.headers.get("content-length");
  if (Number(announced ?? 0) > limit) throw tooLarge(limit);
  try {
    // Node.js accepts no byte beyond the announced length; a web stream would double the cost of a small body.
    if (announced !== null) return Buffer.from(await request.arrayBuffer());
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of request.body ?? []) {
      length += chunk.byteLength;
      if (length > limit || chunks.length === MAX_PIECES) throw tooLarge(limit);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, length);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError("invalid_request", { message: "The request body was truncated.", cause });
  }
}

function tooLarge(limit: number): AppError {
  return new AppError("payload_too_large", {
    message: `The request body is larger than ${limit} bytes, or comes in more than ${MAX_PIECES} pieces.`,
    headers: { Connection: "close" },
  });
}

/** Text that `parse` can read: it returns null to refuse it with `message`. */
export const parsed = <T>(parse: (text: string) => T | null, message: string, ifNoText?: string) =>
  z.string(ifNoText).transform((text, context) => {
    const value = parse(text);
    if (value !== null) return value;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });

/** Text of at most `limit` letters as people count them, not UTF-16 units. */
export const textUpTo = (limit: number, text: z.ZodString = z.string()) =>
  text
    .refine((given) => [...given].length <= limit, `must have at most ${limit} characters`)
    .openapi({ maxLength: limit });

/** Text that is not empty. */
export const filled = (text: z.ZodString = z.string()) => text.min(1, "must not be empty");

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
  .regex(/^0[xX][0-9a-fA-F]{40}$/, "must be an address: 0x and 40 hex digits")
  .transform((address) => address.toLowerCase() as Address)
  .openapi({ type: "string", pattern: "^0[xX][0-9a-fA-F]{40}$", example: EXAMPLE });

export const AddressViewSchema = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .openapi({ example: EXAMPLE }) as unknown as z.ZodType<Address>;

export const AddressParamsSchema = z.object({
  address: AddressSchema.openapi({ param: { name: "address", in: "path" } }),
});

export const ContractParamsSchema = z.object({
  id: AddressSchema.openapi({
    param: { name: "id", in: "path" },
    description: "Contract id: the address of its escrow",
  }),
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

export type PageQuery = z.output<typeof PageQuerySchema>;

/** The cursor of a list whose order is not that of ids: the key of the page's last row, opaque to callers. */
export const encodeCursor = (key: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(key)).toString("base64url");

/** The key in a cursor. Throws `invalid_request` unless it has this shape and `fits` the list. */
export function decodeCursor<T>(schema: z.ZodType<T>, cursor: string, fits = (_: T): boolean => true): T {
  try {
    const key = schema.parse(JSON.parse(Buffer.from(cursor, "base64url").toString("utf8")));
    if (fits(key)) return key;
  } catch {
    // Refused below.
  }
  const message = "is not a nextCursor of this list and sort order";
  throw invalidField("cursor", message, `cursor: ${message}; restart without a cursor`);
}

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

/** A row's values for the fields of a response: texts can be times. */
type Stored<T> = { [K in keyof T]: T[K] | (string extends T[K] ? Date : never) };

/** The fields of a response's schema, of a row. Its other columns stay out, and times become text. */
export function shown<T extends object>(schema: z.ZodType<T> & { shape: object }, row: Stored<T>): T {
  const fields = (Object.keys(schema.shape) as (keyof T)[]).map((key) => [key, row[key]] as const);
  return Object.fromEntries(
    fields.map(([key, value]) => [key, value instanceof Date ? value.toISOString() : value]),
  ) as T;
}

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
  query: PageQuery,
  { data, nextCursor }: Page<T>,
): { data: T[]; nextCursor?: string | null } {
  const isWhole = query.limit === undefined && query.cursor === undefined && nextCursor === null;
  return isWhole ? { data } : { data, nextCursor };
}
