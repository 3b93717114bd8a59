/** A Backup Agent's stake, as every response shows it. */

import { z } from "@hono/zod-openapi";
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { lockedUntil, requireIndex, stake } from "../../db/onchain.js";
import type { Deps } from "../../deps.js";
import { AddressViewSchema, parsed } from "../../http/schemas.js";

const AMOUNT = "must be a decimal above 0, with at most 18 decimals and no exponent";

export const StakeBodySchema = z
  .object({
    /** Text, because the body parser keeps the digits as sent. */
    amount: parsed((text) => parseDecimal(text, TOKEN_DECIMALS) || null, AMOUNT, AMOUNT)
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
    stakedSince: z.iso.datetime().nullable().openapi({
      description: "When the stake last grew; it allows votes on contracts that are matched later",
    }),
    eligible: z.boolean(),
    releasableAt: z.iso
      .datetime()
      .nullable()
      .openapi({ description: "Time after which it is paid back; null while it is not being withdrawn" }),
  })
  .openapi("Stake");

export type StakeView = z.infer<typeof StakeSchema>;

export interface StakeRow {
  /** Base units. */
  amount: bigint;
  since: bigint;
  /** In seconds; votes can delay it. */
  releasableAt: bigint | null;
}

/** Null if nothing is staked. */
export async function loadStake(db: Executor, agent: Address): Promise<StakeRow | null> {
  const [row] = await db
    .select({
      amount: stake.amount,
      since: stake.since,
      releasableAt: sql<string | null>`case when ${stake.releasableAt} is not null
        then greatest(${stake.releasableAt}, ${lockedUntil(sql`${agent}`)}) end`,
    })
    .from(stake)
    .where(eq(stake.agent, agent));
  await requireIndex(db);
  if (row === undefined) return null;
  return { ...row, releasableAt: row.releasableAt === null ? null : BigInt(row.releasableAt) };
}

/** The stake of any address; zero and nulls if it has none. */
export async function viewStake(
  { db, readParameters }: Pick<Deps, "db" | "readParameters">,
  agent: Address,
): Promise<StakeView> {
  const row = await loadStake(db, agent);
  if (row === null) {
    return { agentId: agent, staked: "0.0", stakedSince: null, eligible: false, releasableAt: null };
  }
  const required = BigInt((await readParameters()).baEligibilityStake) * TOKEN_UNIT;
  return {
    agentId: agent,
    staked: formatDecimal(row.amount, TOKEN_DECIMALS),
    stakedSince: isoTime(Number(row.since)),
    eligible: row.releasableAt === null && row.amount >= required,
    releasableAt: row.releasableAt === null ? null : isoTime(Number(row.releasableAt)),
  };
}

/** Base units of one protocol token. */
export const TOKEN_UNIT = 10n ** BigInt(TOKEN_DECIMALS);
