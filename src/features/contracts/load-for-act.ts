/** The contract that somebody acts on: what callers were told of it counts, though a reorganisation took it back. */

import type { Address } from "@working-contracts/protocol/types";
import { eq, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import { workingContract } from "../../db/onchain.js";
import { requireIndex } from "../../db/require-index.js";
import { AppError } from "../../errors.js";
import { type ContractRow, noContract, selectContracts } from "./view.js";

/**
 * The row of one contract; throws 404 `not_found`, and 503 `unavailable` while the index does not show an operation on it
 * whose caller was told that it was applied: nobody is refused, or asked for money, on a state that is to go.
 */
export async function loadContractForAct(db: Executor, id: Address): Promise<ContractRow> {
  const isTakenBack = takenBackFrom(id);
  const [row] = await selectContracts(db, eq(workingContract.id, id), { isTakenBack }).limit(1);
  if (row !== undefined) {
    await requireIndex(db, [row]);
    if (row.isTakenBack) throw takenBack();
    return row;
  }
  await requireIndex(db);
  // Asked together: what is shown again in between must not look as if it had never been.
  const { rows } = await db.execute<{ unsure: boolean }>(sql`
    select ${isTakenBack} or exists (
      select 1 from ${workingContract} where ${workingContract.id} = ${id} and ${workingContract.phase} <> 'none'
    ) as unsure`);
  throw rows[0]?.unsure === true ? takenBack() : noContract(id);
}

/** SQL: whether an answered operation on the escrow waits to be applied again, or to be shown again by the index. */
function takenBackFrom(escrow: Address) {
  return sql<boolean>`exists (
    select 1 from app.operation told
    where told.escrow = ${escrow} and told.response is not null and (
      told.state in ('queued', 'held', 'sent')
      or told.state = 'mined' and not exists (
        select 1 from onchain.escrow_event event
        where event.contract_id = told.escrow and event.block_number = told.block_number
          and event.block_hash = told.block_hash)))`;
}

function takenBack(): AppError {
  return new AppError("unavailable", {
    message:
      "The chain took back a block that this contract stands on; what its parties were told is being applied again. Repeat the call.",
    retryable: true,
    retryAfterSeconds: 2,
  });
}
