import { createMiddleware } from "hono/factory";
import { AppError } from "../../errors.js";
import { parseBody } from "../body.js";
import type { AppEnv } from "../env.js";

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
  if (request.method === "GET" || request.method === "HEAD" || request.body === null) return Buffer.alloc(0);
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
