/** Loads a contract for an action on it. Results that callers were given count, even if a reorg removed their blocks. */

import type { Address } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { workingContract } from "../../db/onchain.js";
import { requireIndex } from "../../db/require-index.js";
import { AppError } from "../../errors.js";
import { type ContractRow, noContract, selectContracts } from "./view.js";

/**
 * The row of one contract. Throws 404 `not_found`, and 503 `unavailable` while the index lacks an operation on it that was
 * reported as applied: no one is refused, or asked for money, because of a state that is about to change.
 */
export async function loadContractForAction(db: Executor, id: Address): Promise<ContractRow> {
  const isReorganized = lacksReported(id);
  const [row] = await selectContracts(db, eq(workingContract.id, id), { isReorganized }).limit(1);
  if (row !== undefined) {
    await requireIndex(db, [row]);
    if (row.isReorganized) throw reorganized();
    return row;
  }
  await requireIndex(db);
  // One query: a contract that reappears between two queries would look as if it had never existed.
  const { rows } = await db.execute<{ unsure: boolean }>(sql`
    select ${isReorganized} or exists (
      select 1 from ${workingContract} where ${workingContract.id} = ${id} and ${workingContract.phase} <> 'none'
    ) as unsure`);
  throw rows[0]?.unsure === true ? reorganized() : noContract(id);
}

/** SQL: whether an operation on the escrow that has a response waits to be applied or indexed again. */
function lacksReported(escrow: Address) {
  return sql<boolean>`exists (
    select 1 from app.operation reported
    where reported.escrow = ${escrow} and reported.response is not null and (
      reported.state in ('queued', 'held', 'sent')
      or reported.state = 'mined' and not exists (
        select 1 from onchain.escrow_event event
        where event.contract_id = reported.escrow and event.block_number = reported.block_number
          and event.block_hash = reported.block_hash)))`;
}

function reorganized(): AppError {
  return new AppError("unavailable", {
    message:
      "A chain reorganization affected this contract; its operations are being applied again. Retry the request.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}
