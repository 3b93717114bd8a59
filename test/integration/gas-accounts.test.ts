/** Gas that batches charge to the accounts of their operations' agents, as reorgs move them. */
import { escrowAbi } from "@working-contracts/protocol/abi";
import { MAX_PRICE } from "@working-contracts/protocol/amounts";
import { eq } from "drizzle-orm";
import {
  encodeAbiParameters,
  encodeEventTopics,
  getAbiItem,
  type TransactionReceipt,
  zeroAddress,
} from "viem";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Database, databaseOn, migrate } from "../../src/db/client.js";
import { batch } from "../../src/db/schema.js";
import type { AppError } from "../../src/errors.js";
import { type GasPolicy, recordBatch } from "../../src/relayer/gas-accounts.js";
import {
  admitCredit,
  admitDelegation,
  admitPaid,
  admitSigned,
  readOutboxState,
} from "../../src/relayer/limits.js";
import { enqueue } from "../../src/relayer/outbox.js";
import { useDatabase } from "../support/database.js";

const LIMITS = { allowance: 0, budget: 0, perFee: 0 };
const AGENTS = ["0xa1", "0xa2"];
const database = await useDatabase({ maxConnections: 5 });
await migrate(database.pool);

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

test("a settlement at the highest price is credited, also to those who already have the most", async () => {
  const event = { abi: escrowAbi, eventName: "WorkingContractSettled" } as const;
  const { inputs } = getAbiItem({ abi: escrowAbi, name: event.eventName });
  const payout = { client: 0n, worker: 0n, treasury: MAX_PRICE / 5n };
  const log = {
    address: zeroAddress,
    topics: encodeEventTopics({ ...event, args: { status: 1 } }),
    data: encodeAbiParameters(inputs.slice(1), [zeroAddress, zeroAddress, zeroAddress, payout]),
  };
  await database.pool.query("update app.operation set escrow = $1, kind = 'vote', state = 'mined'", [
    log.address,
  ]);
  const receipt = { ...receiptOf(1000n), logs: [log] } as never;
  for (const id of [1n, 2n])
    await database.db.transaction((tx) =>
      recordBatch(tx, { id, state: "mined" }, receipt, { ...LIMITS, perFee: 33_000_000 }),
    );
  const most = Number.MAX_SAFE_INTEGER;
  expect(await charged()).toMatchObject({ "0xa1": -most, "0xa2": -most });
});

/** Delays each statement that stores operations, or each of their rows, until the test ends. */
async function slowInserts(each: "row" | "statement", seconds: number): Promise<void> {
  await database.pool.query(`
    create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(${seconds}); return new; end';
    create trigger slow before insert on app.operation for each ${each} execute function slow()`);
  onTestFinished(async () => void (await database.pool.query("drop function slow cascade")));
}

/** How the statements end that the test sends from now on: with a deadlock, some of them are rejected. */
function endsOfStatements() {
  const sent = vi.spyOn(database.pool, "query");
  onTestFinished(() => sent.mockRestore());
  return () => sent.mock.settledResults.map(({ type }) => type);
}

test("processes that store the same operations in different orders do not wait for each other in a circle", async () => {
  // Longer than a statement takes to begin, so that each has stored its first row when it meets the other's.
  await slowInserts("row", 0.3);
  const store = (db: Database, onceKey: string) =>
    enqueue(db, { kind: "draw", signed: false, target: "0x", data: "0x", gasLimit: 1, onceKey } as never);
  const [one, other] = [databaseOn(database.pool), databaseOn(database.pool)];
  const ends = endsOfStatements();
  const stored = await Promise.all([
    ...["a", "b"].map((key) => store(one, key)),
    ...["b", "a"].map((key) => store(other, key)),
  ]);
  const keys = stored.map(({ operation }) => operation.onceKey);
  expect(keys).toEqual(["a", "b", "b", "a"]);
  expect(stored.filter(({ existing }) => existing)).toHaveLength(2);
  expect(ends()).not.toContain("rejected");
});

test("of payments by one payer whose nonces cross between two processes, each is stored or found", async () => {
  await slowInserts("row", 0.3);
  const store = (db: Database, onceKey: string, nonce: string) => {
    const payment = { asset: "0xa", payer: "0xb", nonce };
    const payable = { kind: "accept", signed: true, target: "0x", data: "0x", gasLimit: 1, onceKey, payment };
    return enqueue(db, payable as never);
  };
  const [one, other] = [databaseOn(database.pool), databaseOn(database.pool)];
  const ends = endsOfStatements();
  const stored = await Promise.all([
    store(one, "a", "1"),
    store(one, "c", "2"),
    store(other, "b", "2"),
    store(other, "d", "1"),
  ]);
  expect(stored.map(({ operation }) => operation.nonce)).toEqual(["1", "2", "2", "1"]);
  expect(stored.filter(({ existing }) => existing)).toHaveLength(2);
  expect(ends()).toContain("rejected");
});

test("an agent whose payments the relayer's simulation refuses 30 times an hour pays later, and still acts", async () => {
  const agent = "0xa1";
  const deps = { db: database.db, config: { gasPolicy: LIMITS }, publicClient: {} } as never;
  const pay = async () => {
    const state = await readOutboxState(database.db, { caller: agent, gasPolicy: LIMITS });
    return admitPaid(deps, { caller: agent, kind: "accept" }, state);
  };
  const refuse = (count: number) =>
    database.pool.query(
      `insert into app.operation (kind, caller, target, data, gas_limit, signed, state, reason)
      select 'create', '0xa1', '0x', '0x', 1, true, 'rejected', 'PaymentFailed' from generate_series(1, $1)`,
      [count],
    );
  await database.pool.query("update app.operation set signed = true, state = 'final' where caller = '0xa1'");
  await refuse(29);
  expect(await pay()).toEqual(LIMITS);
  await refuse(1);
  await expect(pay()).rejects.toMatchObject({ code: "rate_limited" });
  expect(await admitSigned(deps, agent)).toBeUndefined();
});

test("an address whose broadcast signature ended without a block stays within its gas limits for a day", async () => {
  const gasPolicy = { allowance: 1_000, budget: 0, perFee: 0 };
  const agent = "0xa1";
  const deps = {
    db: database.db,
    config: { gasPolicy },
    publicClient: { getCode: async () => undefined },
  } as never;
  await database.pool.query(
    "insert into app.gas_account (address, used, earned, owed) values ($1, 0, 0, 2000)",
    [agent],
  );
  const isHeld = async () => {
    const calls = [
      () => admitSigned(deps, agent),
      () => admitDelegation(deps, { agent, onceKey: undefined }),
      async () => {
        const state = await readOutboxState(database.db, { caller: agent, gasPolicy });
        return admitPaid(deps, { caller: agent, kind: "dispute" }, state);
      },
    ];
    const refusals = await Promise.all(calls.map((call) => call().catch(({ code }: AppError) => code)));
    expect(new Set(refusals).size).toBe(1);
    return refusals[0] === "rate_limited";
  };
  const change = (set: string) =>
    database.pool.query(`update app.operation set ${set} where caller = '0xa1'`);
  await change("state = 'rejected', signed = true, reason = 'Expired'");
  expect(await isHeld()).toBe(false);
  await change("published_at = now()");
  expect(await isHeld()).toBe(true);
  await database.pool.query(
    `insert into app.operation (kind, caller, target, data, gas_limit, signed, state)
    values ('create', $1, '0x', '0x', 1, true, 'final')`,
    [agent],
  );
  expect(await isHeld()).toBe(true);
  await change("updated_at = now() - interval '1 day'");
  expect(await isHeld()).toBe(false);
});

test("others' debts count against an agent that wasted gas twice in a day, and never for a call whose money has arrived", async () => {
  const gasPolicy = { allowance: 1_000, budget: 1, perFee: 0 };
  const publicClient = { getCode: async () => undefined };
  const deps = { db: database.db, config: { gasPolicy }, publicClient } as never;
  const caller = "0xa1";
  await database.pool.query(
    "insert into app.gas_account (address, used, earned, owed) values ('*', 0, 0, 5000)",
  );
  const waste = () =>
    database.pool.query(
      `insert into app.operation (kind, caller, target, data, gas_limit, signed, state, published_at)
      values ('cancel', $1, '0x', '0x', 1, true, 'rejected', now())`,
      [caller],
    );
  const limitOf = async (admitted: Promise<unknown>): Promise<unknown> =>
    admitted.then(
      () => null,
      ({ options }: AppError) => (options.details as { limit: string }).limit,
    );
  const own = { ...gasPolicy, budget: 0 };
  await database.pool.query("update app.operation set state = 'final'");
  expect(await admitSigned(deps, caller)).toBeUndefined();
  await waste();
  expect(await admitSigned(deps, caller)).toEqual(own);
  expect(await admitDelegation(deps, { agent: caller, onceKey: undefined })).toEqual(own);
  await waste();
  expect(await limitOf(admitSigned(deps, caller))).toBe("budget");
  expect(await admitCredit(deps, { caller, kind: "dispute" })).toBeUndefined();
  expect(await limitOf(admitCredit(deps, { caller, kind: "create" }))).toBe("budget");
});

describe("gas limits", () => {
  beforeEach(() => database.pool.query("truncate app.operation restart identity"));

  const GAS = 100;
  const operationOf = (caller: string, gasPolicy: GasPolicy) =>
    ({
      kind: "create",
      escrow: null,
      signed: true,
      caller,
      target: "0x",
      data: "0x",
      gasLimit: GAS,
      gasPolicy,
    }) as never;
  const store = (caller: string, gasPolicy: GasPolicy) =>
    enqueue(database.db, operationOf(caller, gasPolicy)).then(
      () => true,
      (error: AppError) => error.options.details as unknown,
    );
  const owe = (address: string, owed: number) =>
    database.pool.query("insert into app.gas_account (address, used, earned, owed) values ($1, 0, 0, $2)", [
      address,
      owed,
    ]);

  test("hold for addresses that all pay at the same moment", async () => {
    const limits = { allowance: 1_000, budget: 5 * GAS, perFee: 0 };
    // Statements that are sent at the same moment also run at the same moment.
    await slowInserts("statement", 0.1);
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) => store(`0x${index}`, limits)),
    );
    const stored = outcomes.filter((outcome) => outcome === true).length;
    expect(stored).toBe(5);
    expect(outcomes).toContainEqual({ limit: "budget", retryAfterSeconds: expect.any(Number) });
  });

  test.each(["sent", "mined", "quarantined"] as const)(
    "count sent operations of a %s batch",
    async (state) => {
      const limits = { allowance: 2 * GAS, budget: 0, perFee: 0 };
      expect(await store("0xa1", limits)).toBe(true);
      expect(await store("0xa1", limits)).toBe(true);
      await database.pool.query("update app.operation set state = 'sent', batch_id = 1");
      // Operations that failed in a mined batch stay sent.
      const set = { state, hasFailures: state === "mined" };
      await database.db.update(batch).set(set).where(eq(batch.id, 1n));
      expect(await store("0xa1", limits)).toEqual({ limit: "allowance", retryAfterSeconds: 1 });
      await database.pool.query("update app.operation set state = 'final'");
      expect(await store("0xa1", limits)).toBe(true);
    },
  );

  test("are paid back by time, and leave those out who earned their gas", async () => {
    const limits = { allowance: 86_400, budget: 3_600, perFee: 0 };
    const waitOf = async (address: `0x${string}`) =>
      (await readOutboxState(database.db, { caller: address, gasPolicy: limits })).gasRefusal;
    await owe("0xa1", 86_400 + 10);
    expect(await waitOf("0xa1")).toEqual({ limit: "allowance", retryAfterSeconds: 10 });
    await owe("*", 3_600 + 20);
    expect(await waitOf("0xa2")).toEqual({ limit: "budget", retryAfterSeconds: 20 });
    await database.pool.query("update app.gas_account set owed_at = now() - interval '21 seconds'");
    expect([await waitOf("0xa1"), await waitOf("0xa2")]).toEqual([null, null]);
    await database.pool.query("update app.gas_account set owed_at = now()");
    await owe("0xa2", -GAS);
    expect(await waitOf("0xa2")).toBeNull();
  });

  test("count what is pending for others only if they had not earned it", async () => {
    const limits = { allowance: 1_000, budget: 3_600, perFee: 0 };
    await owe("*", 3_600 - GAS / 2);
    await owe("0xa1", -2 * GAS);
    expect(await store("0xa1", limits)).toBe(true);
    expect(await store("0xa2", limits)).toBe(true);
    expect(await store("0xa3", limits)).toEqual({ limit: "budget", retryAfterSeconds: GAS / 2 });
    await owe("0xa2", -GAS / 4);
    expect(await store("0xa3", limits)).toEqual({ limit: "budget", retryAfterSeconds: GAS / 4 });
    await database.pool.query("update app.gas_account set owed = 8 * owed where address = '0xa2'");
    expect(await store("0xa3", limits)).toBe(true);
  });
});
