import { z } from "@hono/zod-openapi";
import type { Address } from "@working-contracts/protocol/types";

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
