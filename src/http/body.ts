/**
 * JSON bodies, read once from the raw bytes.
 *
 * `c.get("rawBody")` are the raw bytes, for hashes. `c.req.json()` is replaced by `parseBody`, so that a schema sees:
 *
 * - `budgetOrPrice` and `amount` at the top level as **text**, whether sent as a JSON number or as a string: the digits
 *   as sent (`50.0`, `1e2`, `0.10`), never through a float. Their schema is a string handed to `parseDecimal`.
 * - every other number as a JavaScript number; one that would change its value (`12345678901234567890`, `1e999`) is
 *   refused, because it could not be stored as given.
 * - an empty body as `{}`. Operations without a declared body never parse it and accept anything.
 *
 * Refused with `400 invalid_request`: text that is not UTF-8 or not JSON, anything but an object, a key given twice
 * with different values, nesting deeper than 64, NUL characters and lone surrogates (Postgres and RFC 8785
 * do not allow them).
 */
import { LIMITS } from "@working-contracts/protocol/limits";
import { createMiddleware } from "hono/factory";
import { isLosslessNumber, parse } from "lossless-json";
import { AppError } from "../errors.js";
import type { AppEnv } from "./middleware.js";

/** Top-level fields whose numbers stay text. */
const TEXT_NUMBERS = new Set(["budgetOrPrice", "amount"]);

/** Parses the bytes of a request body; throws `invalid_request` saying what is wrong and where. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.length === 0) return {};
  const text = decode(bytes);
  assertShallow(text);
  const value = parseText(text);
  if (typeof value !== "object" || value === null || Array.isArray(value) || isLosslessNumber(value)) {
    throw fault("", "must be a JSON object");
  }
  const body = value as Record<string, unknown>;
  for (const [key, member] of Object.entries(body)) {
    assertText(key, "");
    setMember(
      body,
      key,
      TEXT_NUMBERS.has(key) && isLosslessNumber(member) ? member.value : convert(member, key),
    );
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

/** The parser is recursive: a flat scan keeps deeply nested brackets from exhausting its stack. */
function assertShallow(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (inString) {
      if (char === "\\") i++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") {
      if (++depth > LIMITS.bodyDepth) throw fault("", `is nested deeper than ${LIMITS.bodyDepth} levels`);
    } else if (char === "}" || char === "]") depth--;
  }
}

function parseText(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw fault(
      "",
      cause instanceof SyntaxError ? `is not valid JSON: ${cause.message}` : "is not valid JSON",
      cause,
    );
  }
}

/** Replaces LosslessNumbers in place, and refuses values that could not be stored as given. */
function convert(value: unknown, path: string): unknown {
  if (typeof value === "string") return assertText(value, path);
  if (typeof value !== "object" || value === null) return value;
  if (isLosslessNumber(value)) {
    const number = Number(value.value);
    if (decimal(value.value) === decimal(String(number))) return number;
    throw fault(path, `${value.value.slice(0, 40)} cannot be represented exactly; send it as a string`);
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = convert(value[i], `${path}.${i}`);
    return value;
  }
  for (const [key, member] of Object.entries(value)) {
    assertText(key, path);
    setMember(value, key, convert(member, `${path}.${key}`));
  }
  return value;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** One spelling for each value of a JSON number: `1.50` and `15e-1` are equal. Null for infinity. */
function decimal(text: string): string | null {
  const [, sign, whole, fraction = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  if (whole === undefined) return null;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  // A regular expression for these zeros would take quadratic time.
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const significant = digits.slice(0, end);
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Plain assignment of a key named `__proto__` would change the prototype instead. */
function setMember(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** In a regular expression with `u`, only a surrogate without its other half matches. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function assertText(text: string, path: string): string {
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

/**
 * Reads the body once, up to `limit` bytes (otherwise `413 payload_too_large`), keeps the bytes as `rawBody`, and makes
 * `c.req.json()` parse them by body.ts. Parsing waits until a route needs it, so 401 comes before 400.
 */
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

async function readBytes(request: Request, limit: number): Promise<Buffer> {
  if (request.body === null) return Buffer.alloc(0);
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge(limit);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request.body) {
      length += chunk.byteLength;
      if (length > limit) throw tooLarge(limit);
      chunks.push(chunk);
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError("invalid_request", { message: "The request body was truncated.", cause });
  }
  return Buffer.concat(chunks, length);
}

function tooLarge(limit: number): AppError {
  return new AppError("payload_too_large", {
    message: `The request body is larger than ${limit} bytes.`,
    headers: { Connection: "close" },
  });
}
