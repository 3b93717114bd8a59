/** Index and event log on a chain with reorgs, with an indexer that restarts, and with several writers. */
import type { EventType } from "@working-contracts/protocol/events";
import { asc, eq, isNotNull } from "drizzle-orm";
import { type Address, type Hex, keccak256 } from "viem";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createNotifications, migrate } from "../../src/db/client.js";
import * as onchain from "../../src/db/onchain.js";
import { type IndexedTarget, indexProgress, waitForIndexed } from "../../src/db/onchain.js";
import { event } from "../../src/db/schema.js";
import { AppError } from "../../src/errors.js";
import { matches, readPage } from "../../src/events/log.js";
import { createLogWriter, readLogLag, writeLog } from "../../src/events/log-writer.js";
import { respondFrom } from "../../src/payments/relayed-call.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { waitingForLock } from "../support/database.js";
import { INDEXING_MS, untilTrue } from "../support/test-chain.js";
import { createActors, ELIGIBILITY_STAKE, holdTerms } from "./indexer-actors.js";
import { addressOf, useIndexerNetwork } from "./indexer-network.js";

const network = await useIndexerNetwork();
await migrate(network.pool);
const notifications = createNotifications({ pool: network.pool });
const actors = await createActors(network, 4);
const [client, worker, rival] = [network.wallet(1), network.wallet(2), network.wallet(3)];
const running: { stop(): Promise<void> }[] = [];
/** Events of a contract that was posted and accepted. */
const MATCHED = ["contract.created", "contract.accepted"];
const ZERO_SALT: Hex = `0x${"00".repeat(32)}`;
const logger = { info: () => {}, warn: () => {} };

afterEach(async () => {
  for (const part of running.splice(0)) await part.stop();
});
afterAll(() => notifications.stop());

function startWriter(): void {
  const { db, publicClient } = network;
  const writer = createLogWriter({ db, publicClient, notifications, logger });
  running.push(writer);
  writer.start();
}

/** Creates an escrow whose terms this service holds. The log ignores all others. */
const createKnown = (title: string): Promise<Address> =>
  actors.create({
    title,
    initiator: client,
    matchIn: 86_400,
    onAddress: (escrow) => holdTerms(network.db, { escrow, title, caller: client.account.address }),
  });

/** Creates an escrow whose texts were dropped unpaid. The log passes over its events until they are back. */
const createForgotten = (title: string): Promise<Address> =>
  actors.create({
    title,
    initiator: client,
    matchIn: 86_400,
    async onAddress(escrow) {
      const expired = `insert into app.expired_attempt (id, caller, body_hash, escrow_terms) values (lower($1), '', $2, '{}')`;
      await network.pool.query(expired, [escrow, title]);
    },
  });

const reach = (target: Omit<IndexedTarget, "timeoutMs">, timeoutMs = INDEXING_MS) =>
  waitForIndexed(network.db, { ...target, timeoutMs });
const indexed = async (blockNumber?: bigint) => reach({ blockNumber: blockNumber ?? (await network.head()) });

const { rowOf } = network;
const namesOf = async (escrow: Address) => (await network.eventsOf(escrow)).map(({ name }) => name);
const logOf = (escrow: Address) =>
  network.db.select().from(event).where(eq(event.contractId, escrow)).orderBy(asc(event.position));
const typesOf = async (escrow: Address) => (await logOf(escrow)).map(({ type }) => type);
const untilTypes = async (escrow: Address, types: string[]) => {
  await untilTrue(async () => (await typesOf(escrow)).length >= types.length).catch(() => undefined);
  expect(await typesOf(escrow)).toEqual(types);
};

/** Every position from 1 on exists exactly once, whatever happened. */
async function expectWhole(): Promise<void> {
  const rows = await network.db
    .select({ position: event.position })
    .from(event)
    .where(isNotNull(event.position))
    .orderBy(asc(event.position));
  expect(rows.map(({ position }) => position)).toEqual(rows.map((_, i) => BigInt(i + 1)));
}

/**
 * Replaces the newest blocks, down to and including `from`, with empty ones. The indexer is idle meanwhile: if it is
 * just requesting the logs of a removed block, Ponder repeats that request for a minute before it looks at the next
 * block.
 */
async function removeBlocks(from: bigint): Promise<void> {
  await pauseBlocks(network.testClient);
  let head: bigint;
  do {
    head = await network.head();
    await indexed(head);
    // A block that was being made meanwhile exists by now.
  } while ((await network.head()) !== head);
  const depth = Number(head - from) + 1;
  await network.reorg(depth);
  await resumeBlocks(network.testClient);
}

async function mineAgain(raw: readonly Hex[]): Promise<void> {
  for (const serializedTransaction of raw)
    await network.publicClient.sendRawTransaction({ serializedTransaction });
  await network.testClient.mine({ blocks: 1 });
}

const rawOf = (hash: Hex): Promise<Hex> =>
  network.publicClient.request({
    method: "eth_getRawTransactionByHash" as never,
    params: [hash] as never,
  });

describe("the event log", () => {
  it("undoes a match, corrects the events that a reorg removed, and reports those that replaced them", async () => {
    startWriter();
    const escrow = await createKnown("contested");
    const lost = await actors.accept(worker, escrow);
    const target = { ...lost, escrow, timeoutMs: INDEXING_MS };
    expect(await waitForIndexed(network.db, target), "first match is visible").toBe(true);
    expect(await rowOf(escrow)).toMatchObject({ phase: "matched", worker: addressOf(worker) });
    expect(await respondFrom(network.db, target, () => rowOf(escrow))).toMatchObject({ phase: "matched" });
    await untilTypes(escrow, MATCHED);

    // As by a restarted indexer, which takes back what is not final and reads it again.
    const missed = respondFrom(network.db, target, async () => {
      throw new AppError("not_found", { message: "No such contract" });
    });
    await expect(missed, "a contract gone for a moment").rejects.toMatchObject({
      code: "settlement_pending",
    });
    const overtaken = respondFrom(network.db, target, async () => {
      await removeBlocks(lost.blockNumber);
      await untilTrue(async () => (await rowOf(escrow))?.phase === "created");
    });
    await expect(overtaken, "a response built from a removed block").rejects.toMatchObject({
      code: "settlement_pending",
    });
    expect(await rowOf(escrow)).toMatchObject({
      worker: null,
      matchedAt: null,
      updatedBlock: expect.any(BigInt),
    });
    expect(await namesOf(escrow)).toEqual(["WorkingContractCreated"]);
    expect(await reach({ ...lost, escrow }, 200), "the lost block counts as not indexed").toBe(false);
    await untilTypes(escrow, [...MATCHED, "event.reverted"]);
    const [, accepted, reverted] = await logOf(escrow);
    expect(reverted).toMatchObject({
      data: { eventId: String(accepted?.position), type: "contract.accepted" },
      agents: accepted?.agents,
      chainEventId: null,
    });
    expect(accepted?.revertedBy).toBe(reverted?.position);
    // A filter by type passes the reversals of the events that it passes.
    const found = async (...types: EventType[]) => {
      const log = { reader: client.account.address, after: 0n, limit: 10, newest: 1_000n };
      const { rows } = await readPage(network.db, { ...log, filter: { types, contractId: escrow } });
      const all = await logOf(escrow);
      expect(all.filter((row) => matches(row, { types }, log.reader))).toEqual(rows);
      return rows.map(({ type }) => type);
    };
    expect(await found("contract.accepted")).toEqual(["contract.accepted", "event.reverted"]);
    expect(await found("contract.created")).toEqual(["contract.created"]);
    expect(await found("event.reverted")).toEqual(["event.reverted"]);

    const won = await actors.accept(rival, escrow);
    expect(await reach({ ...won, escrow }), "second match is visible").toBe(true);
    expect(await rowOf(escrow)).toMatchObject({
      phase: "matched",
      worker: addressOf(rival),
      updatedBlockHash: won.blockHash,
    });
    expect(await namesOf(escrow)).toEqual(["WorkingContractCreated", "WorkingContractMatched"]);
    await untilTypes(escrow, [...MATCHED, "event.reverted", "contract.accepted"]);
    expect((await logOf(escrow)).at(-1)).toMatchObject({
      blockHash: won.blockHash,
      data: { worker: addressOf(rival) },
    });
    await expectWhole();
  });

  it("undoes a whole Working Contract, the newest events first, and finds it again in its new block", async () => {
    startWriter();
    const before = await network.head();
    const escrow = await createKnown("moved");
    const accepted = await actors.accept(worker, escrow);
    await untilTypes(escrow, MATCHED);
    const row = await rowOf(escrow);
    const raw: Hex[] = [];
    for (let number = before + 1n; number <= accepted.blockNumber; number++) {
      const { transactions } = await network.publicClient.getBlock({ blockNumber: number });
      for (const hash of transactions) raw.push(await rawOf(hash));
    }
    await removeBlocks(before + 1n);
    await untilTrue(async () => (await rowOf(escrow)) === undefined);
    expect(await namesOf(escrow)).toEqual([]);
    const undone = [...MATCHED, "event.reverted", "event.reverted"];
    await untilTypes(escrow, undone);
    const log = await logOf(escrow);
    expect(log.slice(2).map(({ data }) => data.type)).toEqual(["contract.accepted", "contract.created"]);

    await mineAgain(raw);
    await untilTypes(escrow, [...undone, "contract.created", "contract.accepted"]);
    const again = await rowOf(escrow);
    const changed = { createdAt: 0n, matchedAt: 0n, updatedBlock: 0n, updatedBlockHash: "0x" };
    expect({ ...again, ...changed }).toEqual({ ...row, ...changed });
    expect(again?.updatedBlockHash).not.toBe(row?.updatedBlockHash);

    // Events of an escrow that was deployed, removed by a reorg and deployed again must still be followed.
    const delivery = await actors.deliver(worker, escrow);
    expect(await reach({ ...delivery, escrow })).toBe(true);
    await expectWhole();
  });

  it("is the same after the indexer was killed and read the newest blocks again", async () => {
    startWriter();
    const escrow = await createKnown("restarted indexer");
    await actors.accept(worker, escrow);
    await untilTypes(escrow, MATCHED);
    network.killIndexer();
    await untilTrue(async () => (await indexProgress(network.db)) === null);
    await actors.deliver(worker, escrow);
    await untilTrue(async () => (await indexProgress(network.db)) !== null);
    await untilTypes(escrow, [...MATCHED, "contract.delivered"]);
    await indexed();
    expect(await typesOf(escrow)).not.toContain("event.reverted");
    await expectWhole();
  }, 300_000);

  it("finds events that happened or were undone while no writer was running", async () => {
    startWriter();
    const escrow = await createKnown("stopped writer");
    const lost = await actors.accept(worker, escrow);
    await untilTypes(escrow, MATCHED);
    await running.pop()?.stop();

    await removeBlocks(lost.blockNumber);
    await actors.accept(rival, escrow);
    await actors.deliver(rival, escrow);
    startWriter();
    const rematched = [...MATCHED, "event.reverted", "contract.accepted", "contract.delivered"];
    await untilTypes(escrow, rematched);
    await expectWhole();
  });

  it("gets the events of a contract whose texts were dropped once they are back, in a block that a reorg leaves alone", async () => {
    startWriter();
    const forgotten = await createForgotten("forgotten");
    await actors.accept(worker, forgotten);
    const known = [await createKnown("known"), await createKnown("known, too")];
    const newest = [];
    for (const escrow of known) newest.push(await actors.accept(worker, escrow));
    for (const escrow of known) await untilTypes(escrow, MATCHED);
    expect(await typesOf(forgotten)).toEqual([]);

    const { address: caller } = client.account;
    await holdTerms(network.db, { escrow: forgotten, title: "forgotten", caller });
    await untilTypes(forgotten, MATCHED);
    await removeBlocks(newest[0]?.blockNumber ?? 0n);
    for (const escrow of known) await untilTypes(escrow, [...MATCHED, "event.reverted"]);
    expect(await typesOf(forgotten)).toEqual(MATCHED);
    await expectWhole();
  });

  it("gets such events before those that are new when the texts are back", async () => {
    startWriter();
    const escrow = await createForgotten("forgotten, too");
    await untilTypes(await createKnown("after it"), ["contract.created"]);
    await running.pop()?.stop();
    await holdTerms(network.db, { escrow, title: "forgotten, too", caller: client.account.address });
    await actors.accept(worker, escrow);
    await indexed();
    startWriter();
    await untilTypes(escrow, MATCHED);
    await expectWhole();
  });

  it("is seen to be late while no writer is running, and then no longer", async () => {
    startWriter();
    const first = await createKnown("in the log");
    await untilTypes(first, ["contract.created"]);
    const lag = async () => {
      await indexed();
      return readLogLag(network.db, (await indexProgress(network.db))?.timestamp ?? 0);
    };
    await untilTrue(async () => (await lag()) === 0);
    await running.pop()?.stop();

    await network.testClient.increaseTime({ seconds: 600 });
    await network.testClient.mine({ blocks: 1 });
    expect(await lag(), "nothing is missing").toBe(0);
    const late = await createKnown("not in the log");
    await network.testClient.increaseTime({ seconds: 300 });
    await network.testClient.mine({ blocks: 1 });
    expect(await lag()).toBeGreaterThanOrEqual(300);
    expect(await lag()).toBeLessThan(600);
    startWriter();
    await untilTypes(late, ["contract.created"]);
    await untilTrue(async () => (await lag()) === 0);
  });

  it("gets each event once from several writers, some of which stop in the middle", async () => {
    const { db, publicClient, pool } = network;
    const escrows = [await createKnown("shared 1"), await createKnown("shared 2")];
    await pool.query(
      `insert into app.event (type, contract_id, agents, data, occurred_at, source)
       select 'complaint.filed', id, '{}', '{}', now(), 'shared:' || id || i
       from unnest($1::text[]) id, generate_series(1, 100) i`,
      [escrows],
    );
    const writers = Array.from({ length: 4 }, async () => {
      for (let round = 0; round < 25; round++) {
        await writeLog({ db, publicClient, logger }).catch(() => undefined);
      }
    });
    const breaker = (async () => {
      for (let i = 0; i < 20; i++) {
        await pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where pid <> pg_backend_pid() and datname = current_database()
             and application_name = 'working-contracts' and xact_start is not null`,
        );
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    await Promise.all([...writers, breaker]);
    startWriter();
    for (const escrow of escrows) {
      await untilTrue(
        async () => (await logOf(escrow)).filter(({ position }) => position !== null).length === 101,
      );
    }
    await expectWhole();
  });

  it("undoes more events than it checks in one round, and reports no others again", async () => {
    const GONE = 450;
    const escrow = await createKnown("deep");
    const { db, publicClient, pool } = network;
    const writer = createLogWriter({ db, publicClient, notifications, logger });
    writer.start();
    await untilTypes(escrow, ["contract.created"]);
    await writer.stop();
    const [created] = await logOf(escrow);
    const goneBlock = `0x${"de".repeat(32)}`;
    await pool.query(
      `insert into app.event (position, type, contract_id, agents, data, occurred_at, source, chain_event_id,
         block_number, block_hash, transaction_hash, log_index)
       select last_position + n, 'contract.cancelled', contract_id, agents, data, occurred_at, 'gone:' || n,
         chain_event_id || '-' || lpad(n::text, 3, '0'), block_number, $2, transaction_hash, log_index
       from app.event, app.event_log, generate_series(1, $3) n where event.position = $1`,
      [created?.position?.toString(), goneBlock, GONE],
    );
    await pool.query(
      `update app.event_log set last_position = last_position + $1, scanned_id = $2, scanned_hash = $3`,
      [GONE, `${created?.chainEventId}-${GONE}`, goneBlock],
    );

    startWriter();

    const undone = async (): Promise<number> =>
      (await logOf(escrow)).filter(({ type }) => type === "event.reverted").length;
    await untilTrue(async () => (await undone()) === GONE);
    const rows = await logOf(escrow);
    expect(
      rows.filter(({ blockHash, revertedBy }) => blockHash === goneBlock && revertedBy === null),
    ).toEqual([]);
    expect(rows.filter(({ type }) => type === "contract.created")).toHaveLength(1);
    expect(rows).toHaveLength(1 + 2 * GONE);
    await expectWhole();
  });

  it("does not block the indexer while the indexer undoes blocks", async () => {
    startWriter();
    await untilTypes(await createKnown("before"), ["contract.created"]);
    for (const part of running.splice(0)) await part.stop();
    const escrow = await createKnown("undoing");
    await indexed();
    const { db, publicClient, pool } = network;
    const undoing = await pool.connect();
    try {
      // As Ponder locks: first its tables and then, while it holds them, its checkpoint.
      await undoing.query("begin");
      await undoing.query("lock table onchain.working_contract in access exclusive mode");
      const round = writeLog({ db, publicClient, logger });
      await untilTrue(async () => (await waitingForLock(pool)) !== 0);
      await undoing.query("set local lock_timeout = '5s'");
      await undoing.query("lock table onchain._ponder_checkpoint in access exclusive mode");
      await undoing.query("rollback");
      await round;
    } finally {
      undoing.release(true);
    }
    startWriter();
    await untilTypes(escrow, ["contract.created"]);
  });

  it("reports a Backup Agent's payout that the token rejected only once it is paid", async () => {
    startWriter();
    await actors.stake(rival, ELIGIBILITY_STAKE);
    // Only agents that staked before the match can vote, and these calls can fall into one second.
    await network.testClient.increaseTime({ seconds: 60 });
    const escrow = await createKnown("refused juror");
    await actors.accept(worker, escrow);
    await actors.deliver(worker, escrow);
    await actors.dispute(client, escrow);
    await actors.vote(rival, escrow, 0x15, ZERO_SALT);
    await network.testClient.increaseTime({ seconds: 86_400 });
    await actors.openVote(rival, escrow, 0x15, ZERO_SALT);
    await actors.tally(escrow);
    await actors.settle(escrow);
    const juror = addressOf(rival);
    const payouts = async () =>
      (await logOf(escrow))
        .filter(({ type, data }) => type.startsWith("payout.") && String(data.payee).toLowerCase() === juror)
        .map(({ type, data }) => [type, data.role, data.amount]);

    await actors.blacklist(rival.account.address, true);
    await actors.claim(rival, escrow);
    await untilTrue(async () => (await payouts()).length === 2);
    const [deferred, rewarded] = await payouts();
    expect(deferred).toEqual(["payout.deferred", undefined, expect.any(String)]);
    expect(rewarded).toEqual(["payout.paid", "backup-agent", "0.0"]);

    await actors.blacklist(rival.account.address, false);
    await actors.claimDeferred(rival.account.address, escrow);
    await untilTrue(async () => (await payouts()).length === 3);
    expect((await payouts())[2]).toEqual(["payout.paid", "deferred", deferred?.[2]]);
  });

  it("undoes an end by time if it turns out that a transaction came first, or that nothing happened", async () => {
    startWriter();
    const before = await network.head();
    const escrow = await createKnown("late news");
    await untilTypes(escrow, ["contract.created"]);
    const lastBlock = await network.head();
    // As if a removed branch had passed the deadline without a match.
    await network.pool.query(
      "update app.event_deadline set due_at = 0 where contract_id = $1 and name = 'unmatched'",
      [escrow],
    );
    await untilTypes(escrow, ["contract.created", "contract.unmatched"]);
    const accepted = await actors.accept(worker, escrow);
    const corrected = ["contract.created", "contract.unmatched", "event.reverted", "contract.accepted"];
    await untilTypes(escrow, corrected);
    const log = await logOf(escrow);
    expect(log[2]?.data).toEqual({ eventId: String(log[1]?.position), type: "contract.unmatched" });

    await network.pool.query(
      "update app.event_deadline set due_at = 0 where contract_id = $1 and name = 'absent'",
      [escrow],
    );
    await untilTypes(escrow, [...corrected, "contract.absent"]);
    expect(accepted.blockNumber).toBeGreaterThan(lastBlock);
    await removeBlocks(before + 1n);
    await untilTypes(escrow, [...corrected, "contract.absent", ...Array(3).fill("event.reverted")]);
    const undone = (await logOf(escrow)).slice(5).map(({ data }) => data.type);
    expect(undone).toEqual(["contract.absent", "contract.accepted", "contract.created"]);
    await expectWhole();
  });
});

describe("a reorg", () => {
  it("restores a deleted stake", async () => {
    const agent = network.wallet(4);
    const staker = addressOf(agent);
    await actors.stake(agent, 1n);
    const staked = await actors.stake(agent, ELIGIBILITY_STAKE);
    expect(await reach({ ...staked, staker }), "the stake is visible").toBe(true);
    const unbonding = await actors.requestUnstake(agent);
    expect(await reach({ ...unbonding, staker }), "its withdrawal is visible").toBe(true);
    const elsewhere = { ...unbonding, blockHash: keccak256(unbonding.blockHash), staker };
    expect(await reach(elsewhere, 200), "another branch's withdrawal counts as not indexed").toBe(false);
    const stakeOf = () => network.db.select().from(onchain.stake).where(eq(onchain.stake.agent, staker));
    await reach({ blockNumber: await network.head() });
    const before = await stakeOf();
    const timeOf = async ({ blockHash }: { blockHash: Hex }) =>
      (await network.publicClient.getBlock({ blockHash })).timestamp;
    const since = await timeOf(staked);
    const releasableAt = (await timeOf(unbonding)) + 48n * 3600n;
    expect(before).toMatchObject([{ amount: ELIGIBILITY_STAKE + 1n, since, releasableAt }]);

    await network.testClient.increaseTime({ seconds: 48 * 3600 });
    const { blockNumber } = await actors.withdrawStake(agent);
    await reach({ blockNumber });
    expect(await stakeOf()).toEqual([]);
    expect(await reach({ ...unbonding, staker }, 200), "a deleted row may not have been inserted yet").toBe(
      false,
    );

    await removeBlocks(blockNumber);
    await untilTrue(async () => (await stakeOf()).length === 1);
    expect(await stakeOf()).toEqual(before);
  });
});

describe("a new block", () => {
  it("is usually visible within a quarter of a second", async () => {
    const delayOfNextBlock = async (): Promise<number> => {
      const visible = reach({ blockNumber: (await network.head()) + 1n });
      await network.testClient.mine({ blocks: 1 });
      const startedAt = performance.now();
      expect(await visible).toBe(true);
      return performance.now() - startedAt;
    };
    let delays: number[] = [];
    const median = () => delays.toSorted((a, b) => a - b)[delays.length / 2];
    // While the machine is busy, the newest ten can all be late.
    await untilTrue(async () => {
      delays = [...delays, await delayOfNextBlock()].slice(-10);
      return delays.length === 10 && Number(median()) < 250;
    }).catch(() => undefined);
    expect(median()).toBeLessThan(250);
  });
});
