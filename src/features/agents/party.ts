/** Agents that have something at stake, for whom room is kept that free addresses cannot take. */
import type { Address } from "@working-contracts/protocol/types";
import { sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";

/** Whether the agent is a party to a contract that has not ended, or has a stake. */
export async function isParty(db: Executor, agent: Address): Promise<boolean> {
  const isOpen = sql`phase <> 'none' and ended_at is null and not settled`;
  const { rows } = await db.execute<{ party: boolean }>(sql`
    select exists (select 1 from onchain.working_contract where client = ${agent} and ${isOpen})
      or exists (select 1 from onchain.working_contract where worker = ${agent} and ${isOpen})
      or exists (select 1 from onchain.stake where agent = ${agent} and amount > 0) as party`);
  return rows[0]?.party === true;
}
