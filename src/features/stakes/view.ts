/** A Backup Agent's stake, as every response shows it. */

import { formatDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Address } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { lockedUntil, stake } from "../../db/onchain.js";
import { requireIndex } from "../../db/require-index.js";
import type { Deps } from "../../deps.js";
import { isoTime } from "../contracts/view.js";
import type { ParameterReader } from "../protocol/parameters.js";

/** The usual dependencies, and the eligibility stake of future contracts. */
export type StakeDeps = Deps & { readParameters: ParameterReader };

export interface StakeView {
  agentId: Address;
  /** Protocol tokens. */
  staked: string;
  /** When it last grew; it allows votes on disputes that begin later. */
  stakedSince: string | null;
  /** Whether it is enough for disputes that begin now. */
  eligible: boolean;
  /** When it can be withdrawn; null while no withdrawal was requested. */
  releasableAt: string | null;
}

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
export async function viewStake({ db, readParameters }: StakeDeps, agent: Address): Promise<StakeView> {
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
