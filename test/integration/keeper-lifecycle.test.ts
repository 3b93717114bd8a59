import { setTimeout as delay } from "node:timers/promises";
import { relayAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { votingClosesAt } from "@working-contracts/protocol/status";
import { like, sql } from "drizzle-orm";
import { pino } from "pino";
import { type Address, keccak256, toHex, zeroHash } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ChainClock, createChainClock } from "../../src/chain/clients.js";
import { createNotifications, migrate, type Notifications } from "../../src/db/client.js";
import { waitForIndexed } from "../../src/db/onchain.js";
import { entrustedVote, operation } from "../../src/db/schema.js";
import { countLate, createKeeper } from "../../src/keeper/keeper.js";
import { drawOperation, requestUnstakeOperation, settleOperation } from "../../src/relayer/operations.js";
import { createRelayer } from "../../src/relayer/relayer.js";
import type { Loop } from "../../src/scheduling.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { INDEXING_MS, untilTrue, type Wallet } from "../support/test-chain.js";
import { createActors, ELIGIBILITY_STAKE, holdTerms } from "./indexer-actors.js";
import { addressOf, useIndexerNetwork } from "./indexer-network.js";
import { RELAYER_OPTIONS } from "./relayer-network.js";

const SETTLED_ALL_MET = 6;
const SETTLED_PARTIAL = 8;
const CANCELLED_UNMATCHED = 9;
const CANCELLED_BY_INITIATOR = 10;
const CANCELLED_ABSENT = 12;

const HOUR = 3600;
const DAY = 24 * HOUR;

const network = await useIndexerNetwork();
const actors = await createActors(network, 8);
const [client, worker] = [network.wallet(2), network.wallet(3)];
const voters = [4, 5, 6].map((index) => network.wallet(index));

describe("the keeper", { timeout: 300_000 }, () => {
  let clock: ChainClock;
  let notifications: Notifications;
  let relayer: Loop;
  let keepers: Loop[] = [];
  let serial = 0;

  beforeAll(async () => {
    await migrate(network.pool);
    for (const voter of voters) await actors.stake(voter, ELIGIBILITY_STAKE);

    const account = privateKeyToAccount(keccak256(toHex("keeper test signer")));
    await network.testClient.setBalance({ address: account.address, value: 10n ** 20n });
    const relay = { address: network.deployment.relay, abi: relayAbi } as const;
    await actors.call(network.wallet(0), relay, "setSigner", [account.address, true]);
    clock = createChainClock(network);
    await clock.refresh();
    const logger = pino({ level: "silent" });
    const { db, pool, publicClient, deployment } = network;
    notifications = createNotifications({ pool });
    const shared = { db, pool, publicClient, clock, deployment, notifications, logger };
    relayer = createRelayer({ ...shared, account, options: RELAYER_OPTIONS });
    relayer.start();
    // Two keepers, like two processes.
    keepers = [1, 2].map(() => createKeeper({ db, clock, deployment, logger, intervalMs: 200 }));
    for (const keeper of keepers) keeper.start();
  });

  afterAll(async () => {
    await Promise.all(keepers.map((keeper) => keeper.stop()));
    await relayer?.stop();
    await notifications?.stop();
    clock?.stop();
  });

  beforeEach(() => {
    serial += 1;
  });

  const create = (name: string, { isOurs = true, matchIn = HOUR } = {}) => {
    const title = `${serial} ${name}`;
    const { db } = network;
    const hold = (escrow: Address) => holdTerms(db, { escrow, title, caller: client.account.address });
    return actors.create({ title, initiator: client, matchIn, ...(isOurs && { onAddress: hold }) });
  };

  async function matched(name: string, options?: { matchIn: number }): Promise<Address> {
    const escrow = await create(name, options);
    await actors.accept(worker, escrow);
    return escrow;
  }

  async function delivered(name: string, options?: { matchIn: number }): Promise<Address> {
    const escrow = await matched(name, options);
    await actors.deliver(worker, escrow);
    return escrow;
  }

  /** Waits for the index first: a dispute that is not indexed yet would look like a review that has expired. */
  async function pass(seconds: number): Promise<void> {
    const blockNumber = await network.head();
    expect(await waitForIndexed(network.db, { blockNumber, timeoutMs: INDEXING_MS })).toBe(true);
    await network.testClient.increaseTime({ seconds });
    await network.testClient.mine({ blocks: 1 });
  }

  const statusOf = (escrow: Address) =>
    network.publicClient.readContract({ ...actors.escrowAt(escrow), functionName: "status" });
  const bookedAt = (escrow: Address) =>
    network.publicClient.readContract({ ...actors.escrowAt(escrow), functionName: "booked" });

  const isDrawn = async (escrow: Address): Promise<boolean> =>
    (await network.publicClient.readContract({ ...actors.escrowAt(escrow), functionName: "jury" })).drawn;

  const settles = (escrow: Address, status: number) =>
    untilTrue(async () => (await statusOf(escrow)) === status && (await bookedAt(escrow)) === 0n);

  const operationsFor = (key: string) =>
    network.db
      .select()
      .from(operation)
      .where(like(operation.onceKey, `${key}%`))
      .orderBy(operation.id);

  it("ignores escrows that this service does not know", async () => {
    const foreign = await create("foreign", { isOurs: false });
    const own = await create("own");
    await actors.cancel(client, foreign);
    await actors.cancel(client, own);
    await settles(own, CANCELLED_BY_INITIATOR);
    expect(await operationsFor(`settle:${foreign}`)).toEqual([]);
  });

  it("settles each contract that time or the parties ended, exactly once", async () => {
    const unmatched = await create("unmatched");
    const absent = await matched("absent");
    const unreviewed = await delivered("unreviewed");
    const cancelled = await create("cancelled");
    await actors.cancel(client, cancelled);
    await untilTrue(async () => (await bookedAt(cancelled)) === 0n);
    expect(await statusOf(cancelled)).toBe(CANCELLED_BY_INITIATOR);

    await pass(5 * HOUR);

    await settles(unmatched, CANCELLED_UNMATCHED);
    await settles(absent, CANCELLED_ABSENT);
    await settles(unreviewed, SETTLED_ALL_MET);
    for (const escrow of [unmatched, absent, unreviewed, cancelled]) {
      expect(await operationsFor(`settle:${escrow}`)).toHaveLength(1);
    }
  });

  it("leaves held payouts alone until the hold has passed", async () => {
    await actors.setParameters({ payoutHold: HOUR });
    const held = await delivered("held");
    await actors.setParameters({ payoutHold: 0 });
    const free = await delivered("free");
    await actors.approveDelivery(client, held);
    await actors.approveDelivery(client, free);

    await settles(free, SETTLED_ALL_MET);
    expect(await operationsFor(`settle:${held}`)).toEqual([]);

    await pass(HOUR);
    await settles(held, SETTLED_ALL_MET);
  });

  it("opens an entrusted vote once a block is behind the window, whatever our clock says, and pays the voter", async () => {
    const [voter] = voters as [Wallet];
    // It staked before the match.
    await pass(1);
    const escrow = await delivered("disputed");
    await actors.dispute(client, escrow);
    const votes = 0b01_10_01;
    const commitment = await actors.vote(voter, escrow, votes, zeroHash);
    const entrusted = {
      contractId: escrow,
      backupAgent: addressOf(voter),
      commitment,
      votes,
      salt: zeroHash,
    };
    await network.db.insert(entrustedVote).values(entrusted);
    const { testClient } = network;
    await untilTrue(async () => (await network.rowOf(escrow))?.sealedVotes === 1);
    const closesAt = votingClosesAt((await network.rowOf(escrow)) as never);
    await pauseBlocks(testClient);
    await testClient.setNextBlockTimestamp({ timestamp: BigInt(closesAt - 3) });
    await testClient.mine({ blocks: 1 });
    await untilTrue(() => clock.now() > closesAt);
    // Several rounds of the keepers.
    await delay(1000);
    expect(await operationsFor("open-vote:")).toEqual([]);

    await resumeBlocks(testClient);

    await settles(escrow, SETTLED_PARTIAL);
    for (const key of [`open-vote:${escrow}`, `claim:${escrow}`]) {
      expect(await operationsFor(key)).toHaveLength(1);
    }
  });

  it("draws again if a draw came too late for its seed", async () => {
    await actors.setParameters({ baRecruitCount: 2 });
    const escrow = await delivered("drawn late");
    await actors.setParameters({ baRecruitCount: 0 });
    const late = drawOperation({ escrow, seats: 2, onceKey: `draw:${escrow}:0` });
    await network.db.insert(operation).values({ ...late, state: "final" });
    await actors.dispute(client, escrow);

    await pass(HOUR);

    await untilTrue(() => isDrawn(escrow));
    expect((await operationsFor(`draw:${escrow}`)).map(({ onceKey }) => onceKey)).toEqual([
      `draw:${escrow}:0`,
      `draw:${escrow}:1`,
    ]);
  });

  it.each([
    ["stored with failed actions", "WrongStatus"],
    ["due at one node alone", "PayoutHeld"],
  ])("settles without delay although settlements %s were rejected before", async (_case, reason) => {
    const escrow = await delivered(`approved in vain: ${reason}`);
    const failed = settleOperation({ escrow });
    const rejected = { ...failed, state: "rejected", reason } as const;
    const ago = sql`now() - interval '31 seconds'`;
    await network.db
      .insert(operation)
      .values(Array.from({ length: 10 }, () => ({ ...rejected, createdAt: ago })));
    await actors.approveDelivery(client, escrow);
    await settles(escrow, SETTLED_ALL_MET);
  });

  it("counts a settlement that is refused again and again as late, also while it waits for its next try", async () => {
    const escrow = await delivered("refused for good");
    const rejected = { ...settleOperation({ escrow }), state: "rejected", reason: "OutOfGas" } as const;
    await network.db.insert(operation).values(Array.from({ length: 10 }, () => rejected));
    await actors.approveDelivery(client, escrow);
    const endedAt = async () => Number((await network.rowOf(escrow))?.endedAt ?? 0);
    await untilTrue(async () => (await endedAt()) > 0);
    expect(await countLate(network.db, (await endedAt()) + 299)).toBe(0);
    expect(await countLate(network.db, (await endedAt()) + 300)).toBe(1);
    // Several rounds of the keepers.
    await delay(1000);
    expect(await operationsFor(`settle:${escrow}`)).toHaveLength(10);
  });

  it("retries a payout that the token rejected, but not continuously", async () => {
    const escrow = await create("refused");
    await actors.blacklist(client.account.address, true);
    await actors.cancel(client, escrow);
    const tries = () => operationsFor(`claim-deferred:${escrow}`);
    await untilTrue(async () => (await tries())[0]?.state === "rejected");
    await actors.blacklist(client.account.address, false);
    const later = await delivered("meanwhile");
    await actors.approveDelivery(client, later);
    await settles(later, SETTLED_ALL_MET);
    expect(await tries()).toHaveLength(1);

    await network.db
      .update(operation)
      .set({ createdAt: sql`created_at - interval '2 hours'` })
      .where(like(operation.onceKey, `claim-deferred:${escrow}%`));

    await untilTrue(async () => (await tries()).map(({ state }) => state).join() === "rejected,final");
    expect(await bookedAt(escrow)).toBe(0n);
  });

  it("has one payout wait for the end of a token's pause, and stores the others after it", async () => {
    const usd = { address: network.deployment.asset.address, abi: testUsdAbi } as const;
    const setPaused = (paused: boolean) => actors.call(network.wallet(0), usd, "setPaused", [paused]);
    const statesOf = async (escrow: Address) =>
      (await operationsFor(`claim-deferred:${escrow}`)).map(({ state }) => state).join();
    const first = await create("paused first");
    const others = [await create("paused second"), await create("paused third")];
    await setPaused(true);
    await actors.cancel(client, first);
    await untilTrue(async () => (await statesOf(first)) === "held");
    for (const escrow of others) {
      await actors.cancel(client, escrow);
      await untilTrue(async () => (await statusOf(escrow)) === CANCELLED_BY_INITIATOR);
      await untilTrue(async () => (await network.rowOf(escrow))?.settled === true);
    }
    // Several rounds of the keepers.
    await delay(1000);
    expect(await Promise.all(others.map(statesOf))).toEqual(["", ""]);

    await setPaused(false);
    for (const escrow of [first, ...others])
      await untilTrue(async () => (await bookedAt(escrow)) === 0n && (await statesOf(escrow)) === "final");
  });

  it("pays out no agent that a dispute from before its release awaits; a later dispute does not hold its stake", async () => {
    const [, leaver] = voters as [Wallet, Wallet];
    const agent = addressOf(leaver);
    const { db, deployment } = network;
    await pass(1);
    await actors.setParameters({ baRecruitCount: voters.length, baVotingWindow: 7 * DAY });
    const early = await delivered("disputed before the release");
    const late = await delivered("disputed after the release", { matchIn: 60 * HOUR });
    await actors.setParameters({ baRecruitCount: 0, baVotingWindow: DAY });
    await actors.requestUnstake(leaver);
    const request = requestUnstakeOperation({ deployment, agent, onceKey: "the leaver's request" });
    await db.insert(operation).values({ ...request, state: "final" });
    await actors.dispute(client, early);
    await untilTrue(() => isDrawn(early));

    await pass(2 * DAY + HOUR);
    await actors.dispute(client, late);
    await untilTrue(() => isDrawn(late));
    for (const escrow of [early, late]) {
      const drawn = { ...actors.escrowAt(escrow), functionName: "isDrawn", args: [agent] } as const;
      expect(await network.publicClient.readContract(drawn)).toBe(true);
    }
    // Several rounds of the keepers.
    await delay(1000);
    expect(await operationsFor(`withdraw-stake:${agent}`)).toEqual([]);

    await pass(5 * DAY);
    await untilTrue(async () => (await operationsFor(`withdraw-stake:${agent}`))[0]?.state === "final");
    expect((await network.rowOf(late))?.phase).toBe("disputed");
  });
});
