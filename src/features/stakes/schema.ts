import { z } from "@hono/zod-openapi";
import { parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { AddressViewSchema } from "../../http/schemas.js";
import type { StakeView } from "./view.js";

const AMOUNT = "must be a decimal above 0, with at most 18 decimals and no exponent";

export const StakeBodySchema = z
  .object({
    /** Text, because the body parser keeps the digits as sent. */
    amount: z
      .string(AMOUNT)
      .transform((text, context) => {
        const amount = parseDecimal(text, TOKEN_DECIMALS);
        if (amount !== null && amount > 0n) return amount;
        context.addIssue({ code: "custom", message: AMOUNT });
        return z.NEVER;
      })
      .nullish()
      .openapi({
        type: ["number", "string", "null"],
        example: "1000",
        description: "Protocol tokens, as text or number; the current baEligibilityStake by default",
      }),
  })
  .openapi("StakeBody");

export const StakeSchema = z
  .object({
    agentId: AddressViewSchema,
    staked: z.string().openapi({ example: "1000.0", description: "Protocol tokens" }),
    stakedSince: z.iso
      .datetime()
      .nullable()
      .openapi({ description: "When the stake last grew; it allows votes on disputes that begin later" }),
    eligible: z.boolean(),
    releasableAt: z.iso
      .datetime()
      .nullable()
      .openapi({ description: "Time after which it is paid back; null while it is not being withdrawn" }),
  })
  .openapi("Stake") satisfies z.ZodType<StakeView>;
