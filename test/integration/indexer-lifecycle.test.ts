import { escrowAbi } from "@working-contracts/protocol/abi";
import { eq } from "drizzle-orm";
import { type Address, numberToHex, parseEther, toEventSelector, zeroHash } from "viem";
import { describe, expect, it } from "vitest";
import * as onchain from "../../src/db/onchain.js";
import { indexedBlock, waitForIndexed } from "../../src/db/onchain.js";
import { until } from "../../tools/local/processes.js";
import { INDEXING_MS, type Wallet } from "../support/test-chain.js";
import { createActors, ELIGIBILITY_STAKE, PRICE } from "./indexer-actors.js";
import { addressOf, useIndexerNetwork } from "./indexer-network.js";

const network = await useIndexerNetwork();
const actors = await createActors(network, 7);
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

it("shows terms, parameters, Client and named Worker of a direct award from the start", async () => {
  const options = { title: "direct", initiator: client, counterparty: addressOf(worker) };
  const terms = await actors.termsOf(options);
  const escrow = await actors.create(options);
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

describe("a dispute with a drawn panel", () => {
  const ALL_MET = 0b010101;
  const NONE_MET = 0b101010;
  const saltOf = (index: number) => numberToHex(index + 1, { size: 32 });
  let escrow: Address;

  it("shows the newest parameters, one row per change", async () => {
    await actors.setParameters({ baRecruitCount: 3 });
    await caughtUp();
    const rows = await network.db.select().from(onchain.parameterSet).orderBy(onchain.parameterSet.id);
    expect(rows.map(({ parameters }) => parameters.baRecruitCount)).toEqual([0, 3]);
  });

  it("shows dispute, draw and ballots as they come", async () => {
    for (const voter of voters) await actors.stake(voter, ELIGIBILITY_STAKE);
    // Blocks mined by hand share a second, and only a stake older than the match counts.
    await network.testClient.increaseTime({ seconds: 10 });
    escrow = await actors.create({ title: "disputed", initiator: client, counterparty: addressOf(worker) });
    const steps = [
      await actors.accept(worker, escrow),
      await actors.deliver(worker, escrow),
      await actors.dispute(client, escrow),
    ];
    const blocks = steps.map(({ blockHash }) => network.publicClient.getBlock({ blockHash }));
    const [matchedAt, deliveredAt, disputedAt] = (await Promise.all(blocks)).map(
      ({ timestamp }) => timestamp,
    );
    const times = { matchedAt, deliveredAt, disputedAt };
    const disputed = { phase: "disputed", disputeBond: 2_500_000n, drawn: false, ...times };
    expect(await rowOf(escrow)).toMatchObject({ ...disputed, updatedBlockHash: steps[2]?.blockHash });

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

  it("shows votes in the order of their bonds, once they are open", async () => {
    const half = (await rowOf(escrow))?.baVotingWindow ?? 0;
    await network.testClient.increaseTime({ seconds: half / 2 + 10 });
    for (const act of [actors.vote, actors.openVote]) {
      for (const [index, voter] of voters.entries())
        await act(voter, escrow, index < 2 ? ALL_MET : NONE_MET, saltOf(index));
    }
    expect(await rowOf(escrow)).toMatchObject({ sealedVotes: 3, openedVotes: 3 });
    expect((await votesOf(escrow)).map(({ votes }) => votes)).toEqual([ALL_MET, ALL_MET, NONE_MET]);
  });

  it("shows each voter's claim and reward, even if the reward came later", async () => {
    await actors.tally(escrow);
    await actors.blacklist(addressOf(worker), true);
    await actors.settle(escrow);
    await actors.blacklist(addressOf(worker), false);
    await actors.claimDeferred(addressOf(worker), escrow);
    const [first, second, third] = voters as [Wallet, Wallet, Wallet];
    await actors.setDailyCap(parseEther("1000"));
    await actors.mintReward(escrow, parseEther("950"));
    await actors.claim(first, escrow);
    await actors.claim(third, escrow);
    await actors.claim(second, escrow);
    const claim = { claimed: true, reward: 30, rewardDeferred: false };
    expect(await votesOf(escrow)).toMatchObject([
      claim,
      { ...claim, reward: 0, rewardDeferred: true },
      { ...claim, reward: 0 },
    ]);

    await actors.setDailyCap(parseEther("100000"));
    await actors.claim(second, escrow);
    expect(await votesOf(escrow)).toMatchObject([claim, claim, { ...claim, reward: 0 }]);
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
    const names = new Map(
      escrowAbi.filter((item) => item.type === "event").map((item) => [toEventSelector(item), item.name]),
    );
    const indexed = rows.map((row) =>
      [row.name, row.contractId, row.blockNumber, row.blockHash, row.transactionHash, row.logIndex].join(" "),
    );
    const emitted = logs.map((log) =>
      [
        names.get(log.topics[0] ?? zeroHash),
        log.address.toLowerCase(),
        log.blockNumber,
        log.blockHash,
        log.transactionHash,
        log.logIndex,
      ].join(" "),
    );
    expect(indexed.sort()).toEqual(emitted.sort());
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

  it("never claims to show blocks whose rows it lacks, even if nothing became final meanwhile", async () => {
    await network.testClient.mine({ blocks: 70 });
    await actors.create({ title: "not final", initiator: client });
    await caughtUp();
    const head = await network.head();
    const count = (await snapshot()).working_contract?.length ?? 0;
    network.killIndexer();
    const torn: unknown[] = [];
    let wasDown = false;
    const isBack = async () => {
      const { rows } = await network.pool
        .query<{ block: string; ready: string; contracts: number }>(
          `select ${onchain.blockOf("latest_checkpoint")} as block, value ->> 'is_ready' as ready,
             (select count(*) from onchain.working_contract)::int as contracts
           from onchain._ponder_meta, onchain._ponder_checkpoint`,
        )
        // On a busy machine a restarting indexer can hold its locks for longer than a query may wait.
        .catch(() => ({ rows: [] }));
      const [{ block, ready, contracts } = { block: "0", ready: "0", contracts: 0 }] = rows;
      const isWhole = ready === "1" && BigInt(block) >= head;
      if (isWhole && contracts < count) torn.push(rows[0]);
      wasDown ||= !isWhole;
      return wasDown && isWhole && contracts >= count;
    };
    await until("the index is back", isBack, { timeoutMs: INDEXING_MS, intervalMs: 1 });
    expect(torn).toEqual([]);
  }, 300_000);
});
