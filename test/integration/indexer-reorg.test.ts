import { eq } from "drizzle-orm";
import { type Address, type Hex, keccak256 } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type IndexedTarget, waitForIndexed } from "../../src/db/index-position.js";
import * as onchain from "../../src/db/onchain.js";
import { respondFrom } from "../../src/payments/operation-outcome.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { type Actors, createActors, ELIGIBILITY_STAKE } from "./indexer-actors.js";
import {
  INDEXING_MS,
  type IndexerNetwork,
  startIndexerNetwork,
  until,
  type Wallet,
} from "./indexer-network.js";

let network: IndexerNetwork;
let actors: Actors;
let client: Wallet;
let worker: Wallet;
let rival: Wallet;

beforeAll(async () => {
  network = await startIndexerNetwork();
  actors = await createActors(network, 4);
  [client, worker, rival] = [network.wallet(1), network.wallet(2), network.wallet(3)];
});

afterAll(async () => {
  await network?.stop();
});

const addressOf = (wallet: Wallet) => wallet.account.address.toLowerCase() as Address;
const headNumber = () => network.publicClient.getBlockNumber({ cacheTime: 0 });

async function rowOf(escrow: Address) {
  const [row] = await network.db
    .select()
    .from(onchain.workingContract)
    .where(eq(onchain.workingContract.id, escrow));
  return row;
}

async function namesOf(escrow: Address) {
  const { escrowEvent } = onchain;
  const rows = await network.db
    .select()
    .from(escrowEvent)
    .where(eq(escrowEvent.contractId, escrow))
    .orderBy(escrowEvent.id);
  return rows.map(({ name }) => name);
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
    head = await headNumber();
    await reach({ blockNumber: head });
    // A block that was being made meanwhile exists by now.
  } while ((await headNumber()) !== head);
  const depth = Number(head - from) + 1;
  await network.testClient.request({ method: "anvil_reorg" as never, params: [depth, []] as never });
  await resumeBlocks(network.testClient);
}

const reach = (target: Omit<IndexedTarget, "timeoutMs">, timeoutMs = INDEXING_MS) =>
  waitForIndexed(network.db, { ...target, timeoutMs });

describe("a reorg", () => {
  it("undoes a match, and shows who is matched instead", async () => {
    const escrow = await actors.create({ title: "contested", initiator: client });
    const lost = await actors.accept(worker, escrow);
    expect(await reach({ ...lost, escrow }), "first match is visible").toBe(true);
    expect(await rowOf(escrow)).toMatchObject({ phase: "matched", worker: addressOf(worker) });

    const target = { ...lost, escrow, timeoutMs: INDEXING_MS };
    expect(await respondFrom(network.db, target, () => rowOf(escrow))).toMatchObject({ phase: "matched" });
    const overtaken = respondFrom(network.db, target, async () => {
      await removeBlocks(lost.blockNumber);
      await until(async () => (await rowOf(escrow))?.phase === "created");
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

    const won = await actors.accept(rival, escrow);
    expect(await reach({ ...won, escrow }), "second match is visible").toBe(true);
    expect(await rowOf(escrow)).toMatchObject({
      phase: "matched",
      worker: addressOf(rival),
      updatedBlockHash: won.blockHash,
    });
    expect(await namesOf(escrow)).toEqual(["WorkingContractCreated", "WorkingContractMatched"]);
  });

  it("undoes a whole Working Contract, which is found again in its new block", async () => {
    const options = { title: "vanished", initiator: client };
    const before = await headNumber();
    const escrow = await actors.create(options);
    await reach({ blockNumber: await headNumber() });
    const row = await rowOf(escrow);
    const raw = await rawTransactionsSince(before + 1n);

    await removeBlocks(before + 1n);
    await until(async () => (await rowOf(escrow)) === undefined);
    expect(await namesOf(escrow)).toEqual([]);

    for (const serializedTransaction of raw)
      await network.publicClient.sendRawTransaction({ serializedTransaction });
    await network.testClient.mine({ blocks: 1 });
    await until(async () => (await rowOf(escrow)) !== undefined);
    const again = await rowOf(escrow);
    const changed = { createdAt: 0n, updatedBlock: 0n, updatedBlockHash: "0x" };
    expect({ ...again, ...changed }).toEqual({ ...row, ...changed });
    expect(again?.updatedBlockHash).not.toBe(row?.updatedBlockHash);

    // Events of an escrow that was deployed, removed by a reorg and deployed again must still be followed.
    const matched = await actors.accept(worker, escrow);
    expect(await reach({ ...matched, escrow })).toBe(true);
  });

  it("restores a deleted stake", async () => {
    const agent = network.wallet(4);
    const staker = addressOf(agent);
    const staked = await actors.stake(agent, ELIGIBILITY_STAKE);
    expect(await reach({ ...staked, staker }), "the stake is visible").toBe(true);
    const unbonding = await actors.requestUnstake(agent);
    expect(await reach({ ...unbonding, staker }), "its withdrawal is visible").toBe(true);
    const elsewhere = { ...unbonding, blockHash: keccak256(unbonding.blockHash), staker };
    expect(await reach(elsewhere, 200), "another branch's withdrawal counts as not indexed").toBe(false);
    const stakeOf = () =>
      network.db
        .select()
        .from(onchain.stake)
        .where(eq(onchain.stake.agent, addressOf(agent)));
    await reach({ blockNumber: await headNumber() });
    const before = await stakeOf();
    expect(before).toMatchObject([{ amount: ELIGIBILITY_STAKE, releasableAt: expect.any(BigInt) }]);

    await network.testClient.increaseTime({ seconds: 48 * 3600 });
    const { blockNumber } = await actors.withdrawStake(agent);
    await reach({ blockNumber });
    expect(await stakeOf()).toEqual([]);
    expect(await reach({ ...unbonding, staker }, 200), "a deleted row may not have been inserted yet").toBe(
      false,
    );

    await removeBlocks(blockNumber);
    await until(async () => (await stakeOf()).length === 1);
    expect(await stakeOf()).toEqual(before);
  });
});

describe("a new block", () => {
  it("is usually visible within a quarter of a second", async () => {
    const delayOfNextBlock = async (): Promise<number> => {
      const blockNumber = (await headNumber()) + 1n;
      const visible = reach({ blockNumber });
      await until(async () => (await headNumber()) >= blockNumber);
      const startedAt = performance.now();
      expect(await visible).toBe(true);
      return performance.now() - startedAt;
    };
    let delays: number[] = [];
    const median = () => delays.toSorted((a, b) => a - b)[delays.length / 2];
    // While the machine is busy, the newest ten can all be late.
    await until(async () => {
      delays = [...delays, await delayOfNextBlock()].slice(-10);
      return delays.length === 10 && Number(median()) < 250;
    }).catch(() => undefined);
    expect(median()).toBeLessThan(250);
  });
});

/** The signed transactions of the newest blocks, in order, to mine them again. */
async function rawTransactionsSince(from: bigint) {
  const raw: Hex[] = [];
  for (let number = from; number <= (await headNumber()); number++) {
    const { transactions } = await network.publicClient.getBlock({ blockNumber: number });
    for (const hash of transactions) {
      const params = [hash] as never;
      raw.push(
        await network.publicClient.request({ method: "eth_getRawTransactionByHash" as never, params }),
      );
    }
  }
  return raw;
}
