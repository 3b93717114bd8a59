import type { Address } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import { AppError } from "../errors.js";
import { AddressSchema } from "../http/schemas.js";

/** Reads an address from the path, in lower case. Throws 404 if it is not an address. */
export function addressOf(c: Context, name: string): Address {
  const parsed = AddressSchema.safeParse(c.req.param(name));
  if (parsed.success) return parsed.data;
  throw new AppError("not_found", { message: "The path needs an address: 0x followed by 40 hex digits." });
}
