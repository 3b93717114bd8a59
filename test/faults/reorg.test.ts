/**
 * Rows 19, 20 and 46: reorgs. Guards: mined and final batches are compared with the chain at every head; a transaction that
 * lost its block is sent again, byte for byte; the escrow's state and the token's nonce let nothing apply twice; the
 * index follows by block hash; a batch's gas is charged once, as its last receipt says.
 */
import { setTimeout as delay } from "node:timers/promises";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { encodeFunctionData, type Hex } from "viem";
import { expect, it } from "vitest";
import { until } from "../../tools/local/processes.js";
import type { Agent } from "../support/agent.js";
import { FATES, type Fate } from "./support/cluster.js";
import type { Payment } from "./support/customers.js";
import { expectGasChargedOnce, expectTruth, seededChance, startStory, useScene } from "./support/story.js";

const DEEPEST = 10;
const SERIES = 3;
const IN_EACH = 4;
/** The price of a creation. */
const PRICE = 50_000_000n;
const scene = await useScene("reorg", { env: { CONFIRMATIONS: String(DEEPEST + 2) } });
const { cluster, customers, clients } = scene;
// Deep enough that no reorg undoes the agents' funding, which nothing would repeat.
await cluster.testClient.mine({ blocks: 60 });

async function reorganize(depth: number, fate?: Fate): Promise<void> {
  const { blocks } = cluster;
  await blocks.pause();
  await cluster.reorganize(depth, fate);
  blocks.resume();
}

const chance = seededChance(19);
const shuffled = <T>(items: T[]): T[] =>
  items
    .map((item) => ({ item, order: chance.next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
/** Each depth at least once, each fate equally often, in an order chosen by FAULT_SEED. */
const depths = shuffled(Array.from({ length: SERIES * IN_EACH }, (_, index) => 1 + (index % DEEPEST)));
const fates = shuffled(depths.map((_, index) => FATES[index % FATES.length] as Fate));
const reorganizations = depths.map((depth, at) => ({ depth, fate: fates[at] as Fate }));
const series = Array.from({ length: SERIES }, (_, index) => {
  const planned = reorganizations.slice(index * IN_EACH, (index + 1) * IN_EACH);
  const words = planned.map(({ depth, fate }) => `${depth} ${fate}`).join(", ");
  return [`${index + 1}: ${words}`, planned] as const;
});

it.each(series)(
  "row 19: every payment survives reorgs of 1 to 10 blocks in the middle, series %s",
  async (_, planned) => {
    const { done } = await startStory(scene, undefined, { mayGoBack: true });
    for (const { depth, fate } of planned) {
      await delay(chance.between(300, 999));
      await reorganize(depth, fate);
    }
    await done;
    await expectGasChargedOnce(scene);
  },
);

interface MinedBatch {
  state: string;
  hash: Hex;
  number: string;
  block: string;
  attempts: number;
}

/** The batch that carries the payment's operation. */
async function batchOf({ authorization: { nonce } }: Payment): Promise<MinedBatch> {
  const { rows } = await cluster.pool.query<MinedBatch>(
    `select state, transaction_hash as hash, block_number as number, block_hash as block,
      jsonb_array_length(attempts) as attempts from app.batch
    where id = (select batch_id from app.operation where nonce = $1)`,
    [nonce],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the batch is missing");
  return row;
}

/** A creation whose batch is mined and not yet final. Makes no block afterwards. */
async function minedCreation(client: Agent): Promise<{ payment: Payment; batch: MinedBatch }> {
  const payment = await customers.signedCreation(client);
  const creating = customers.settle(payment);
  creating.catch(() => {});
  await until("it is mined", async () => (await batchOf(payment)).state === "mined", {
    timeoutMs: 60_000,
    intervalMs: 20,
  });
  await cluster.blocks.pause();
  await cluster.blocks.next();
  expect((await creating).status).toBe(200);
  const batch = await batchOf(payment);
  expect(batch.state).toBe("mined");
  return { payment, batch };
}

/** Removes the batch's block and all newer ones. */
async function removeBlockOf({ number }: MinedBatch, fate: Fate): Promise<void> {
  const head = await cluster.publicClient.getBlockNumber({ cacheTime: 0 });
  await cluster.reorganize(Number(head - BigInt(number)) + 1, fate);
}

it("row 19: a batch that is kept in another block keeps its state, and only its block changes", async () => {
  const { payment, batch } = await minedCreation(clients[0]);
  await removeBlockOf(batch, "kept");
  cluster.blocks.resume();
  const { blockHash } = await cluster.publicClient.getTransactionReceipt({ hash: batch.hash });
  expect(blockHash).not.toBe(batch.block);
  await until("the outbox has the new block", async () => (await batchOf(payment)).block === blockHash, {
    timeoutMs: 30_000,
  });
  expect(await batchOf(payment)).toMatchObject({ hash: batch.hash, attempts: 1 });
});

it.each(["dropped", "kept"] as const)(
  "row 46: a batch that a reorg removed (%s) and that is included again is charged to its agent once",
  async (fate) => {
    const [client] = (await customers.join(1)) as [Agent];
    const { payment, batch } = await minedCreation(client);
    expect(await gasCharged(client)).toBeGreaterThan(0);
    await removeBlockOf(batch, fate);
    cluster.blocks.resume();
    await includedAgain(payment, batch);
    await expectTruth(scene);
    expect(await gasCharged(client)).toBe(await gasUsedBy(payment));
  },
);

it("row 46: a batch that uses other gas when it is included again is charged what it used then", async () => {
  const [client] = (await customers.join(1, { funds: PRICE })) as [Agent];
  const { payment, batch } = await minedCreation(client);
  const before = await gasCharged(client);
  await removeBlockOf(batch, "dropped");
  // The payment no longer empties the balance, which costs more.
  const data = encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [client.address, PRICE] });
  const minted = cluster.ownerCall({ to: cluster.deployment.asset.address, data });
  cluster.blocks.resume();
  await minted;
  await includedAgain(payment, batch);
  await expectTruth(scene);
  const charged = await gasCharged(client);
  expect(charged).toBeGreaterThan(before);
  expect(charged).toBe(await gasUsedBy(payment));
});

async function includedAgain(payment: Payment, { block: removed }: MinedBatch): Promise<void> {
  const isIncluded = async (): Promise<boolean> => {
    const { state, block } = await batchOf(payment);
    return (state === "mined" || state === "final") && block !== removed;
  };
  await until("it is included again", isIncluded, { timeoutMs: 60_000 });
}

/** Gas on the agent's account. */
async function gasCharged({ address }: Agent): Promise<number> {
  const { rows } = await cluster.pool.query<{ used: number }>(
    "select used::float8 as used from app.gas_account where address = $1",
    [address],
  );
  return rows[0]?.used ?? 0;
}

/** Gas that the chain says the payment's operation has used: its part of its batch. */
async function gasUsedBy(payment: Payment): Promise<number> {
  const { rows } = await cluster.pool.query<{ share: number }>(
    `select mine.gas_limit::float8 / sum(o.gas_limit) as share
    from app.operation mine join app.batch b on b.id = mine.batch_id join app.operation o on o.id = any(b.operation_ids)
    where mine.nonce = $1 group by mine.gas_limit`,
    [payment.authorization.nonce],
  );
  const { hash } = await batchOf(payment);
  const { gasUsed } = await cluster.publicClient.getTransactionReceipt({ hash });
  return Math.round(Number(gasUsed) * (rows[0]?.share ?? 0));
}

it("row 20: a reorg beyond finality is noticed, raises an alarm, and its transactions are applied again", async () => {
  const before = await cluster.alarms("reorganization_beyond_finality");
  await (await startStory(scene)).done;
  await expectTruth(scene);
  const { rows } = await cluster.pool.query<{ block: string }>(
    "select max(block_number) as block from app.batch where state = 'final'",
  );
  await cluster.blocks.pause();
  const head = await cluster.publicClient.getBlockNumber({ cacheTime: 0 });
  await reorganize(Number(head) - Number(rows[0]?.block) + 2);
  await expectTruth(scene);
  expect(await cluster.alarms("reorganization_beyond_finality")).toBeGreaterThan(before);
});
