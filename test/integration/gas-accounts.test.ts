/** Gas that batches charge to the accounts of their operations' agents, as reorgs move them. */
import type { TransactionReceipt } from "viem";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createDatabase, migrate } from "../../src/db/client.js";
import { recordBatch } from "../../src/relayer/gas-accounts.js";
import { newDatabase, type TestDatabase } from "../support/database.js";

const LIMITS = { allowance: 0, budget: 0, perFee: 0 };
const AGENTS = ["0xa1", "0xa2"];
let own: TestDatabase;
let database: ReturnType<typeof createDatabase>;

beforeAll(async () => {
  own = await newDatabase();
  database = createDatabase(own.url);
  await migrate(database.pool);
});
afterAll(async () => {
  await database.pool.end();
  await own.drop();
});

beforeEach(async () => {
  await database.pool.query("truncate app.gas_account, app.batch, app.operation restart identity");
  for (const agent of AGENTS)
    await database.pool.query(
      "insert into app.operation (kind, caller, target, data, gas_limit) values ('cancel', $1, '0x', '0x', 100)",
      [agent],
    );
  for (const nonce of [1, 2])
    await database.pool.query(
      `insert into app.batch (signer, epoch, account_nonce, operation_ids, attempts)
      values ('0x', 1, $1, '{1,2}', '[]')`,
      [nonce],
    );
});

const receiptOf = (gasUsed: bigint) =>
  ({
    gasUsed,
    transactionHash: "0x01",
    blockNumber: 1n,
    blockHash: "0x02",
    logs: [],
  }) as never as TransactionReceipt;

type State = Parameters<typeof recordBatch>[1]["state"];
const record = (id: bigint, state: State, gasUsed: bigint | null): Promise<void> =>
  database.db.transaction((tx) =>
    recordBatch(tx, { id, state }, gasUsed === null ? null : receiptOf(gasUsed), LIMITS),
  );

/** Gas charged to each agent, and to the account that all share. */
async function charged(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ address: string; owed: number }>(
    "select address, owed::float8 as owed from app.gas_account",
  );
  return Object.fromEntries(rows.map(({ address, owed }) => [address, owed]));
}

test("a batch is charged once, however often it is recorded, and then only the difference", async () => {
  await record(1n, "mined", 1000n);
  await record(1n, "final", 1000n);
  expect(await charged()).toEqual({ "0xa1": 500, "0xa2": 500, "*": 1000 });
  await record(1n, "final", 800n);
  expect(await charged()).toEqual({ "0xa1": 400, "0xa2": 400, "*": 800 });
});

test("two processes that record a batch at once charge it once", async () => {
  await Promise.all([1, 2, 3].map(() => record(1n, "mined", 1000n)));
  expect(await charged()).toEqual({ "0xa1": 500, "0xa2": 500, "*": 1000 });
});

test("a batch whose nonce someone else used is refunded, and the one that replaces it is charged", async () => {
  await record(1n, "mined", 1000n);
  await record(1n, "superseded", null);
  expect(await charged()).toEqual({ "0xa1": 0, "0xa2": 0, "*": 0 });
  await record(2n, "final", 600n);
  expect(await charged()).toEqual({ "0xa1": 300, "0xa2": 300, "*": 600 });
  // A reorg brings the first one back after all.
  await record(1n, "final", 1000n);
  expect(await charged()).toEqual({ "0xa1": 800, "0xa2": 800, "*": 1600 });
});

test("a batch that reverts costs what it used", async () => {
  await record(1n, "reverted", 200n);
  expect(await charged()).toEqual({ "0xa1": 100, "0xa2": 100, "*": 200 });
});
