import { sql } from "drizzle-orm";
import type { Transaction } from "../../db/client.js";

/**
 * Serialises everything that changes or anchors the checkpoints of a Working Contract until the transaction ends.
 * A delivery takes it, computes the root and stores its operation in one transaction; a checkpoint takes it and is
 * refused once such an operation is stored. So the anchored root covers every accepted checkpoint.
 */
export async function lockCheckpoints(tx: Transaction, contractId: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`checkpoints:${contractId}`}, 0))`);
}
