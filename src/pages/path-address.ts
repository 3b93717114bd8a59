import type { Address } from "@working-contracts/protocol/types";
import type { Context } from "hono";
import { AppError } from "../errors.js";
import { AddressSchema } from "../http/address.js";

/** An address in the path, lower case. What is none leads nowhere: throws 404. */
export function addressOf(c: Context, name: string): Address {
  const parsed = AddressSchema.safeParse(c.req.param(name));
  if (parsed.success) return parsed.data;
  throw new AppError("not_found", { message: "This is not an address: 0x and 40 hex digits." });
}
