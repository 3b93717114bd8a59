/** The parts of a request that pages use. */
import { type Address, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import { createMiddleware } from "hono/factory";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import { type AppEnv, clientAddress, createRateLimiter, takeOrRefuse } from "../http/middleware.js";
import { AddressSchema } from "../http/schemas.js";

/** The caller of a page: a reader without an API key, for whom sealed votes stay sealed. */
export const ANONYMOUS: Address = ZERO_ADDRESS;

/** Reads an address from the path, in lower case. Throws 404 if it is not an address, followed by `ending`. */
export function addressOf(c: Context, name: string, ending = ""): Address {
  const param = c.req.param(name) ?? "";
  const parsed = AddressSchema.safeParse(param.slice(0, param.length - ending.length));
  if (parsed.success) return parsed.data;
  throw new AppError("not_found", { message: "The path needs an address: 0x followed by 40 hex digits." });
}

/** One rate limit per client IP for all pages. Create it once per service so that the pages share it. */
export function limitPages({ config }: Pick<Deps, "config">) {
  const limiter = createRateLimiter(config.rateLimits.pages);
  return createMiddleware<AppEnv>(async (c, next) => {
    takeOrRefuse(c, "pages", limiter, clientAddress(c, config.trustedProxies));
    await next();
  });
}
