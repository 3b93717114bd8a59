import { escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { eq } from "drizzle-orm";
import {
  type Address,
  type Hex,
  numberToHex,
  parseAbiItem,
  parseEther,
  toEventSelector,
  zeroHash,
} from "viem";
import { describe, expect, it } from "vitest";
import * as onchain from "../../src/db/onchain.js";
import { indexedBlock, waitForIndexed } from "../../src/db/onchain.js";
import { INDEXING_MS, type Wallet } from "../support/test-chain.js";
import { createActors, ELIGIBILITY_STAKE, PRICE } from "./indexer-actors.js";
import { addressOf, useIndexerNetwork } from "./indexer-network.js";

const network = await useIndexerNetwork();
const actors = await createActors(network, 8);
const [client, worker] = [network.wallet(1), network.wallet(2)];
const voters = [3, 4, 5].map((index) => network.wallet(index));

/** The row, once everything mined so far is visible. */
async function rowOf(escrow: Address) {
  await caughtUp();
  return network.rowOf(escrow);
}

async function caughtUp() {
  const blockNumber = await network.head();
  expect(await waitForIndexed(network.db, { blockNumber, timeoutMs: INDEXING_MS }), "indexed in time").toBe(
    true,
  );
}

async function eventsOf(escrow: Address) {
  await caughtUp();
  return network.eventsOf(escrow);
}

const namesOf = async (escrow: Address) => (await eventsOf(escrow)).map(({ name }) => name);

async function votesOf(escrow: Address) {
  await caughtUp();
  const { vote } = onchain;
  return network.db.select().from(vote).where(eq(vote.contractId, escrow)).orderBy(vote.position);
}

const read = (escrow: Address, functionName: "status" | "client" | "worker" | "booked") =>
  network.publicClient.readContract({ ...actors.escrowAt(escrow), functionName });

describe("a direct award, approved", () => {
  let escrow: Address;

  it("shows terms, parameters, Client and named Worker from the start", async () => {
    const options = { title: "direct", initiator: client, counterparty: addressOf(worker) };
    const terms = await actors.termsOf(options);
    escrow = await actors.create(options);
    const row = await rowOf(escrow);
    const { timestamp, number, hash } = await network.publicClient.getBlock({
      blockNumber: row?.updatedBlock ?? 0n,
    });
    expect(row).toMatchObject({
      ...terms.parameters,
      baEligibilityStake: BigInt(terms.parameters.baEligibilityStake),
      id: escrow,
      initiator: addressOf(client),
      namedCounterparty: addressOf(worker),
      client: addressOf(client),
      worker: addressOf(worker),
      workerInitiated: false,
      computedCriteria: false,
      price: PRICE,
      deposit: PRICE,
      criteriaCount: 3,
      reviewDeadline: BigInt(row?.matchDeadline ?? 0n) + 10_800n,
      termsHash: terms.termsHash,
      phase: "created",
      createdAt: timestamp,
      updatedBlock: number,
      updatedBlockHash: hash,
      outcomes: 0,
      settled: false,
      matchedAt: null,
      endedAt: null,
    });
  });

  it("shows each step with its block's time", async () => {
    const steps = [
      { act: () => actors.accept(worker, escrow), facts: { phase: "matched" }, time: "matchedAt" },
      { act: () => actors.deliver(worker, escrow), facts: { phase: "delivered" }, time: "deliveredAt" },
      {
        act: () => actors.approveDelivery(client, escrow),
        facts: { phase: "approved", outcomes: 0b010101 },
        time: "endedAt",
      },
      { act: () => actors.settle(escrow), facts: { phase: "approved", settled: true }, time: "settledAt" },
    ] as const;
    for (const { act, facts, time } of steps) {
      const { blockHash } = await act();
      const { timestamp } = await network.publicClient.getBlock({ blockHash });
      expect(await rowOf(escrow)).toMatchObject({ ...facts, [time]: timestamp, updatedBlockHash: blockHash });
    }
  });

  it("shows the payout of the ledger and the treasury", async () => {
    expect(await rowOf(escrow)).toMatchObject({
      clientPayout: 0n,
      workerPayout: 50_000_000n,
      treasuryPayout: 2_500_000n,
      treasury: addressOf(network.wallet(9)),
    });
  });

  it("keeps every event in order, with arguments as JSON", async () => {
    const events = await eventsOf(escrow);
    expect(events.map(({ name }) => name)).toEqual([
      "WorkingContractCreated",
      "WorkingContractMatched",
      "WorkingContractDelivered",
      "WorkingContractApproved",
      "WorkingContractSettled",
    ]);
    expect(events[1]?.args).toEqual({ counterparty: addressOf(worker), deposit: "2500000" });
    expect(events[4]?.args).toEqual({
      status: "6",
      client: addressOf(client),
      worker: addressOf(worker),
      treasury: addressOf(network.wallet(9)),
      payout: { client: "0", worker: "50000000", treasury: "2500000" },
    });
    for (const event of events) {
      const receipt = await network.publicClient.getTransactionReceipt({ hash: event.transactionHash });
      expect(event).toMatchObject({ blockHash: receipt.blockHash, blockNumber: receipt.blockNumber });
      expect(receipt.logs.find(({ logIndex }) => logIndex === event.logIndex)?.address.toLowerCase()).toBe(
        escrow,
      );
    }
  });
});

describe("the other ways to match and to end", () => {
  it("leaves the Worker of an open tender open until the match, then shows a withdrawal", async () => {
    const escrow = await actors.create({ title: "tender", initiator: client });
    expect(await rowOf(escrow)).toMatchObject({
      client: addressOf(client),
      worker: null,
      namedCounterparty: null,
    });
    await actors.accept(worker, escrow);
    expect(await rowOf(escrow)).toMatchObject({ client: addressOf(client), worker: addressOf(worker) });
    await actors.withdraw(worker, escrow);
    expect(await rowOf(escrow)).toMatchObject({ phase: "withdrawn", endedAt: expect.any(BigInt) });
    await actors.settle(escrow);
    expect(await rowOf(escrow)).toMatchObject({
      clientPayout: 50_750_000n,
      workerPayout: 1_750_000n,
      treasury: null,
    });
  });

  it("leaves the Client of a reserved listing open until the Buyer is matched", async () => {
    const options = {
      title: "listing",
      initiator: worker,
      workerInitiated: true,
      counterparty: addressOf(client),
    };
    const escrow = await actors.create(options);
    expect(await rowOf(escrow)).toMatchObject({
      client: null,
      worker: addressOf(worker),
      namedCounterparty: addressOf(client),
      deposit: 2_500_000n,
    });
    await actors.accept(client, escrow);
    expect(await rowOf(escrow)).toMatchObject({ client: addressOf(client), worker: addressOf(worker) });
  });

  it("shows a decline and a cancellation", async () => {
    const declined = await actors.create({
      title: "declined",
      initiator: client,
      counterparty: addressOf(worker),
    });
    await actors.decline(worker, declined);
    expect(await rowOf(declined)).toMatchObject({ phase: "declined", endedAt: expect.any(BigInt) });
    const cancelled = await actors.create({ title: "cancelled", initiator: client });
    await actors.cancel(client, cancelled);
    expect(await rowOf(cancelled)).toMatchObject({ phase: "cancelled", endedAt: expect.any(BigInt) });
  });

  it("keeps outcomes computed at delivery", async () => {
    const escrow = await actors.create({ title: "ticket", initiator: client, computedCriteria: true });
    await actors.accept(worker, escrow);
    await actors.deliver(worker, escrow, 0b111001);
    expect(await rowOf(escrow)).toMatchObject({ computedCriteria: true, outcomes: 0b111001 });
    await actors.approveDelivery(client, escrow);
    expect(await rowOf(escrow)).toMatchObject({ phase: "approved", outcomes: 0b111001 });
  });
});

describe("a dispute with a drawn jury", () => {
  const ALL_MET = 0b010101;
  const NONE_MET = 0b101010;
  const saltOf = (index: number) => numberToHex(index + 1, { size: 32 });
  let escrow: Address;

  it("shows stakes", async () => {
    for (const voter of voters) await actors.stake(voter, ELIGIBILITY_STAKE);
    // Blocks mined by hand share a second, and only a stake older than the dispute counts.
    await network.testClient.increaseTime({ seconds: 10 });
    await caughtUp();
    const rows = await network.db.select().from(onchain.stake);
    expect(new Set(rows.map(({ agent }) => agent))).toEqual(new Set(voters.map(addressOf)));
    for (const row of rows) {
      const [amount, since, , releasableAt] = await network.publicClient.readContract({
        address: network.deployment.registry,
        abi: [parseAbiItem("function stakes(address) view returns (uint96, uint40, uint40, uint40)")],
        functionName: "stakes",
        args: [row.agent],
      });
      const { number: blockNumber, hash: blockHash } = await network.publicClient.getBlock({
        blockHash: row.blockHash,
      });
      expect(row).toEqual({
        agent: row.agent,
        amount,
        since: BigInt(since),
        releasableAt: releasableAt === 0 ? null : BigInt(releasableAt),
        blockNumber,
        blockHash,
      });
    }
  });

  it("shows the newest parameters, one row per change", async () => {
    await actors.setParameters({ baRecruitCount: 3 });
    await caughtUp();
    const rows = await network.db.select().from(onchain.parameterSet).orderBy(onchain.parameterSet.id);
    expect(rows.map(({ parameters }) => parameters.baRecruitCount)).toEqual([0, 3]);
    expect(rows[1]?.parameters).toEqual(
      await network.publicClient.readContract({
        address: network.deployment.factory,
        abi: factoryAbi,
        functionName: "parameters",
      }),
    );
  });

  it("shows dispute, draw and ballots as they come", async () => {
    escrow = await actors.create({ title: "disputed", initiator: client, counterparty: addressOf(worker) });
    await actors.accept(worker, escrow);
    await actors.deliver(worker, escrow);
    await actors.dispute(client, escrow);
    expect(await rowOf(escrow)).toMatchObject({ phase: "disputed", disputeBond: 2_500_000n, drawn: false });

    await network.testClient.mine({ blocks: 2 });
    // Claims an array of one without containing it. Ponder's decoder remembers where decoding failed.
    await actors.emitLookAlike([toEventSelector("BackupAgentsDrawn(address[])")], ["0x20", "0x01"]);
    await actors.draw(escrow);
    expect(await rowOf(escrow)).toMatchObject({ drawn: true });
    const drawn = await network.db.select().from(onchain.draw).where(eq(onchain.draw.contractId, escrow));
    expect(drawn).not.toEqual([]);
    for (const voter of voters) {
      const isDrawn = await network.publicClient.readContract({
        ...actors.escrowAt(escrow),
        functionName: "isDrawn",
        args: [voter.account.address],
      });
      expect(drawn.some(({ backupAgent }) => backupAgent === addressOf(voter))).toBe(isDrawn);
    }
  });

  it("numbers votes in the order of their bonds, and opens them", async () => {
    const half = (await rowOf(escrow))?.baVotingWindow ?? 0;
    await network.testClient.increaseTime({ seconds: half / 2 + 10 });
    const commitments: Hex[] = [];
    for (const [index, voter] of voters.entries()) {
      commitments.push(await actors.vote(voter, escrow, index < 2 ? ALL_MET : NONE_MET, saltOf(index)));
    }
    expect(await rowOf(escrow)).toMatchObject({ sealedVotes: 3, openedVotes: 0 });
    expect(await votesOf(escrow)).toEqual(
      voters.map((voter, position) => ({
        contractId: escrow,
        backupAgent: addressOf(voter),
        commitment: commitments[position],
        bond: 7_500_000n,
        position,
        sealedAt: expect.any(BigInt),
        votes: null,
        openedAt: null,
        claimed: false,
        claimedAmount: null,
        reward: null,
        rewardDeferred: false,
      })),
    );
    for (const [index, voter] of voters.entries()) {
      await actors.openVote(voter, escrow, index < 2 ? ALL_MET : NONE_MET, saltOf(index));
    }
    expect(await rowOf(escrow)).toMatchObject({ sealedVotes: 3, openedVotes: 3 });
    expect((await votesOf(escrow)).map(({ votes }) => votes)).toEqual([ALL_MET, ALL_MET, NONE_MET]);
  });

  it("shows the tally, a payout that failed, and its later claim", async () => {
    await actors.tally(escrow);
    expect(await rowOf(escrow)).toMatchObject({
      phase: "tallied",
      outcomes: ALL_MET,
      endedAt: expect.any(BigInt),
    });

    await actors.blacklist(addressOf(worker), true);
    await actors.settle(escrow);
    await caughtUp();
    const deferred = () =>
      network.db.select().from(onchain.deferredPayout).where(eq(onchain.deferredPayout.contractId, escrow));
    expect(await deferred()).toEqual([{ contractId: escrow, payee: addressOf(worker), amount: 52_500_000n }]);

    await actors.blacklist(addressOf(worker), false);
    await actors.claimDeferred(addressOf(worker), escrow);
    await caughtUp();
    expect(await deferred()).toEqual([{ contractId: escrow, payee: addressOf(worker), amount: 0n }]);
  });

  it("shows each voter's payout, even if its reward came later", async () => {
    const [first, second, third] = voters as [Wallet, Wallet, Wallet];
    await actors.setDailyCap(parseEther("1000"));
    await actors.mintReward(escrow, parseEther("950"));
    await actors.claim(first, escrow);
    await actors.claim(third, escrow);
    await actors.claim(second, escrow);
    const claim = { claimed: true, claimedAmount: 11_250_000n, reward: 30, rewardDeferred: false };
    expect(await votesOf(escrow)).toMatchObject([
      claim,
      { ...claim, reward: 0, rewardDeferred: true },
      { ...claim, claimedAmount: 0n, reward: 0 },
    ]);

    await actors.setDailyCap(parseEther("100000"));
    await actors.claim(second, escrow);
    expect(await votesOf(escrow)).toMatchObject([claim, claim, { ...claim, claimedAmount: 0n, reward: 0 }]);
    expect((await namesOf(escrow)).slice(-6)).toEqual([
      "PayoutClaimed",
      "VoteClaimed",
      "VoteClaimed",
      "VoteClaimed",
      "RewardDeferred",
      "VoteClaimed",
    ]);
  });
});

describe("actions of agents outside their contracts", () => {
  it("shows a refunded direct transfer", async () => {
    const payer = network.wallet(7);
    const escrow = await actors.create({ title: "paid directly", initiator: client });
    await actors.directTransfer(payer, escrow, 1_000_000n, numberToHex(7, { size: 32 }));
    expect((await eventsOf(escrow)).map(({ name, args }) => ({ name, args })).at(-1)).toEqual({
      name: "DirectTransferRefunded",
      args: { payer: addressOf(payer), nonce: numberToHex(7, { size: 32 }), amount: "1000000" },
    });
  });

  it("shows a stake that is growing, unbonding and gone", async () => {
    const agent = network.wallet(8);
    const rows = async () => {
      await caughtUp();
      return network.db
        .select()
        .from(onchain.stake)
        .where(eq(onchain.stake.agent, addressOf(agent)));
    };
    const placeOf = async ({ blockHash }: { blockHash: `0x${string}` }) => {
      const { number: blockNumber, timestamp } = await network.publicClient.getBlock({ blockHash });
      return { timestamp, place: { blockNumber, blockHash } };
    };

    await actors.stake(agent, 5n);
    const grown = await placeOf(await actors.stake(agent, 7n));
    const staked = { agent: addressOf(agent), amount: 12n, since: grown.timestamp };
    expect(await rows()).toEqual([{ ...staked, releasableAt: null, ...grown.place }]);
    const requested = await placeOf(await actors.requestUnstake(agent));
    const releasableAt = requested.timestamp + 48n * 3600n;
    expect(await rows()).toEqual([{ ...staked, releasableAt, ...requested.place }]);
    await network.testClient.increaseTime({ seconds: 48 * 3600 });
    await actors.withdrawStake(agent);
    expect(await rows()).toEqual([]);
  });
});

describe("the whole index", () => {
  it("ignores strangers that emit the escrow's events, malformed ones included", async () => {
    const events = escrowAbi.filter((item) => item.type === "event");
    for (const event of events) await actors.emitLookAlike([toEventSelector(event)]);
    const [voteOpened, voteClaimed] = events.filter(
      ({ name }) => name === "VoteOpened" || name === "VoteClaimed",
    );
    if (voteOpened === undefined || voteClaimed === undefined) throw new Error("events are missing");
    const voter = addressOf(network.wallet(3));
    const { contractAddress } = await actors.emitLookAlike([toEventSelector(voteOpened), voter]);
    await actors.emitLookAlike([toEventSelector(voteClaimed), voter]);
    expect(await eventsOf(contractAddress?.toLowerCase() as Address)).toEqual([]);
    expect(await rowOf(contractAddress?.toLowerCase() as Address)).toBeUndefined();
  });

  it("has every event that any escrow emitted, and nothing else", async () => {
    await caughtUp();
    const rows = await network.db.select().from(onchain.escrowEvent);
    const escrows = await network.db.select({ id: onchain.workingContract.id }).from(onchain.workingContract);
    const logs = await network.publicClient.getLogs({ address: escrows.map(({ id }) => id), fromBlock: 0n });
    const key = (hash: string, index: number) => `${hash}:${index}`;
    expect(new Set(rows.map((row) => key(row.transactionHash, row.logIndex)))).toEqual(
      new Set(logs.map((log) => key(log.transactionHash, log.logIndex))),
    );
    const topics = new Map(
      escrowAbi.filter((item) => item.type === "event").map((item) => [toEventSelector(item), item.name]),
    );
    const names = new Map(
      logs.map((log) => [key(log.transactionHash, log.logIndex), topics.get(log.topics[0] ?? zeroHash)]),
    );
    for (const row of rows) expect(row.name).toBe(names.get(key(row.transactionHash, row.logIndex)));
  });

  it("agrees with every escrow about its parties", async () => {
    for (const row of await network.db.select().from(onchain.workingContract)) {
      const zero = "0x0000000000000000000000000000000000000000";
      const chainClient = (await read(row.id, "client")) as Address;
      const chainWorker = (await read(row.id, "worker")) as Address;
      expect(row.client ?? zero).toBe(chainClient.toLowerCase());
      if (row.matchedAt !== null) expect(row.worker).toBe(chainWorker.toLowerCase());
    }
  });
});

describe("the index after a fault", () => {
  async function snapshot() {
    const { rows: tables } = await network.pool.query<{ name: string }>(
      "select viewname as name from pg_views where schemaname = 'onchain' and viewname not like '\\_%' order by 1",
    );
    const rowsOf = async ({ name }: { name: string }) => {
      const { rows } = await network.pool.query(`select * from onchain."${name}"`);
      return [name, rows.map((row) => JSON.stringify(row)).sort()] as const;
    };
    return Object.fromEntries(await Promise.all(tables.map(rowsOf)));
  }

  it("is the same after everything was dropped and indexed again", async () => {
    await caughtUp();
    const before = await snapshot();
    expect(Object.keys(before)).toHaveLength(7);
    for (const [table, rows] of Object.entries(before)) expect(rows, table).not.toEqual([]);

    await network.stopIndexer();
    for (const schema of [network.schema, "onchain", "ponder_sync"]) {
      await network.pool.query(`drop schema "${schema}" cascade`);
    }
    expect(await indexedBlock(network.db)).toBeNull();

    await network.startIndexer();
    await caughtUp();
    expect(await snapshot()).toEqual(before);
  }, 300_000);

  it("is the same after the indexer was killed, and shows what it missed", async () => {
    // Escrows that were deployed live and whose blocks became final must still be followed afterwards.
    const older: Address[] = [];
    for (const title of ["older", "oldest"]) older.push(await actors.create({ title, initiator: client }));
    await network.testClient.mine({ blocks: 35 });
    for (let index = 0; index < 20; index++) {
      const escrow = await actors.create({ title: `crossing ${index}`, initiator: client });
      await actors.accept(worker, escrow);
    }
    await caughtUp();
    const before = await snapshot();
    network.killIndexer();
    const missed = await actors.create({ title: "missed", initiator: client });
    await actors.accept(worker, older[0] as Address);

    await caughtUp();
    expect(await rowOf(missed)).toMatchObject({ phase: "created" });
    expect(await rowOf(older[0] as Address)).toMatchObject({ phase: "matched" });
    await actors.accept(worker, older[1] as Address);
    expect(await rowOf(older[1] as Address)).toMatchObject({ phase: "matched" });
    const after = await snapshot();
    const isMatchedSince = (row: string) => older.some((escrow) => row.startsWith(`{"id":"${escrow}"`));
    for (const [table, rows] of Object.entries(before)) {
      expect(after[table], table).toEqual(expect.arrayContaining(rows.filter((row) => !isMatchedSince(row))));
    }
  }, 300_000);
});
