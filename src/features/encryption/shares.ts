/** Sealed deliveries, encrypted again by a party for the Backup Agents that ask for them. */
import type { Address } from "@working-contracts/protocol/types";
import { and, asc, eq, sql } from "drizzle-orm";
import { draw, vote } from "../../db/onchain.js";
import { deliveryShare, keyRelease } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { loadContractForAction, requireStatus } from "../contracts/load-for-action.js";

export interface ShareView {
  contractId: Address;
  recipient: Address;
  sender: Address;
  jwe: string;
  sharedAt: string;
}

/**
 * Stores what a party encrypted for a Backup Agent, in place of what it shared before; the same text again keeps its
 * first time. Refuses with 404, 403 (not a
 * party; the recipient was not drawn, has not voted and has not asked for the keys) and 409 (not disputed).
 */
export async function shareDelivery(
  { db, clock }: Pick<Deps, "db" | "clock">,
  { id, caller, recipient, jwe }: { id: Address; caller: Address; recipient: Address; jwe: string },
): Promise<ShareView> {
  const row = await loadContractForAction(db, id);
  if (caller !== row.chain.client && caller !== row.chain.worker)
    throw new AppError("forbidden", { message: "Only the contract's client and worker share its delivery." });
  requireStatus(row, "disputed", clock.now());
  const { rows } = await db.execute<{ asked: boolean }>(sql`
    select exists (select 1 from ${keyRelease}
        where ${keyRelease.contractId} = ${id} and ${keyRelease.releasedTo} = ${recipient})
      or exists (select 1 from ${draw} where ${draw.contractId} = ${id} and ${draw.backupAgent} = ${recipient})
      or exists (select 1 from ${vote} where ${vote.contractId} = ${id} and ${vote.backupAgent} = ${recipient})
      as asked`);
  if (rows[0]?.asked !== true) {
    throw new AppError("forbidden", {
      message: `${recipient} is not a Backup Agent of this dispute: it was not drawn, has not voted and has not asked for the keys.`,
    });
  }
  const [stored] = await db
    .insert(deliveryShare)
    .values({ contractId: id, recipient, sender: caller, jwe, sharedAt: new Date() })
    .onConflictDoUpdate({
      target: [deliveryShare.contractId, deliveryShare.recipient, deliveryShare.sender],
      set: {
        jwe,
        sharedAt: sql`case when ${deliveryShare.jwe} = excluded.jwe then ${deliveryShare.sharedAt} else excluded.shared_at end`,
      },
    })
    .returning();
  return toShare(stored as ShareRow);
}

/** Shares with the caller: at most one of each party. */
export async function sharesFor(
  { db }: Pick<Deps, "db">,
  { id, caller }: { id: Address; caller: Address },
): Promise<ShareView[]> {
  await loadContractForAction(db, id);
  const rows = await db
    .select()
    .from(deliveryShare)
    .where(and(eq(deliveryShare.contractId, id), eq(deliveryShare.recipient, caller)))
    .orderBy(asc(deliveryShare.sender));
  return rows.map(toShare);
}

type ShareRow = typeof deliveryShare.$inferSelect;

function toShare({ contractId, recipient, sender, jwe, sharedAt }: ShareRow): ShareView {
  return {
    contractId: contractId as Address,
    recipient: recipient as Address,
    sender: sender as Address,
    jwe,
    sharedAt: sharedAt.toISOString(),
  };
}
