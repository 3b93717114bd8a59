/** The timeline of an escrow to which strangers have made any number of direct transfers. */
import { expect, test } from "vitest";
import { readTimeline } from "../../src/features/contracts/ledger.js";
import { useDatabase } from "../support/database.js";

const ESCROW = "0xe5";
const database = await useDatabase();
await database.pool.query(`
  create schema onchain;
  create table onchain.escrow_event (id text primary key, contract_id text, name text, args json, timestamp numeric,
    block_number numeric, block_hash text, transaction_hash text, log_index integer)`);

/** Events with the ids `from` to `to`. */
const insert = (name: string, from: number, to = from) =>
  database.pool.query(
    `insert into onchain.escrow_event
    select lpad(i::text, 5, '0'), $1, $2, '{}', 1, 1, '0x', '0x', 0 from generate_series($3::int, $4) i`,
    [ESCROW, name, from, to],
  );

test("the timeline has every event but only the newest 1,000 direct transfers", async () => {
  await insert("WorkingContractCreated", 0);
  await insert("DirectTransferRefunded", 1, 1_001);
  await insert("DirectTransferCredited", 1_002);
  await insert("WorkingContractMatched", 1_003);
  const events = await readTimeline(database.db, ESCROW);
  expect(events).toHaveLength(1_002);
  expect(events.map(({ name }) => name)).toEqual([
    "WorkingContractCreated",
    ...Array(999).fill("DirectTransferRefunded"),
    "DirectTransferCredited",
    "WorkingContractMatched",
  ]);
  expect(events[1]?.id).toBe("00003");
});
