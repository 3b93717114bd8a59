/**
 * Rows 19 and 20: reorgs. Guards: mined and final batches are compared with the chain at every head; a transaction that
 * lost its block is sent again, byte for byte; the escrow's state and the token's nonce let nothing apply twice; the
 * index follows by block hash.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { until } from "../../src/indexer/supervision/processes.js";
import type { Agent } from "../support/agent.js";
import { FATES, type Fate } from "./support/cluster.js";
import { expectTruth, openScene, type Scene, seededRandom, shuffled, startStory } from "./support/story.js";

const DEEPEST = 10;
const SERIES = 3;
const IN_EACH = 4;
let scene: Scene;

beforeAll(async () => {
  scene = await openScene("reorg", { env: { CONFIRMATIONS: String(DEEPEST + 2) } });
  // Deep enough that no reorg undoes the agents' funding, which nothing would repeat.
  await scene.cluster.testClient.mine({ blocks: 60 });
});
afterEach(() => scene.cluster.heal());
afterAll(() => scene?.cluster.stop());

async function reorganise(depth: number, fate?: Fate): Promise<void> {
  const { blocks } = scene.cluster;
  await blocks.pause();
  await scene.cluster.reorganise(depth, fate);
  blocks.resume();
}

/** Each depth at least once, each fate equally often, in an order chosen by FAULT_SEED. */
const random = seededRandom(19);
const depths = shuffled(
  Array.from({ length: SERIES * IN_EACH }, (_, index) => 1 + (index % DEEPEST)),
  random,
);
const fates = shuffled(
  depths.map((_, index) => FATES[index % FATES.length] as Fate),
  random,
);
const reorganisations = depths.map((depth, at) => ({ depth, fate: fates[at] as Fate }));
const series = Array.from({ length: SERIES }, (_, index) => {
  const planned = reorganisations.slice(index * IN_EACH, (index + 1) * IN_EACH);
  const words = planned.map(({ depth, fate }) => `${depth} ${fate}`).join(", ");
  return [`${index + 1}: ${words}`, planned] as const;
});

it.each(series)(
  "row 19: every payment survives reorgs of 1 to 10 blocks in the middle, series %s",
  async (_, planned) => {
    const { done } = await startStory(scene, undefined, { mayGoBack: true });
    for (const { depth, fate } of planned) {
      await delay(300 + random(700));
      await reorganise(depth, fate);
    }
    await done;
    await expectTruth(scene);
  },
);

it("row 19: a batch that is kept in another block keeps its state, and only its block changes", async () => {
  const { cluster, customers, clients } = scene;
  const asked = await customers.quoted(clients[0] as Agent, "/v1/contracts", await customers.draft());
  if ("refusal" in asked) throw new Error("no quote");
  const { payment } = asked;
  const batchOfIt = async () => {
    const { rows } = await cluster.pool.query<{
      state: string;
      hash: `0x${string}`;
      number: string;
      block: string;
      attempts: number;
    }>(
      `select state, transaction_hash as hash, block_number as number, block_hash as block,
        jsonb_array_length(attempts) as attempts from app.batch
      where id = (select batch_id from app.operation where nonce = $1)`,
      [payment.authorization.nonce],
    );
    const [row] = rows;
    if (row === undefined) throw new Error("the batch is missing");
    return row;
  };
  const creating = customers.settle(payment);
  creating.catch(() => {});
  await until("it is mined", async () => (await batchOfIt()).state === "mined", {
    timeoutMs: 60_000,
    intervalMs: 20,
  });
  // Before its block is final.
  await cluster.blocks.pause();
  await cluster.blocks.next();
  expect((await creating).status).toBe(200);
  const before = await batchOfIt();
  expect(before.state).toBe("mined");
  const head = await cluster.publicClient.getBlockNumber({ cacheTime: 0 });
  await cluster.reorganise(Number(head - BigInt(before.number)) + 1, "kept");
  cluster.blocks.resume();
  const { blockHash } = await cluster.publicClient.getTransactionReceipt({ hash: before.hash });
  expect(blockHash).not.toBe(before.block);
  await until("the outbox has the new block", async () => (await batchOfIt()).block === blockHash, {
    timeoutMs: 30_000,
  });
  expect(await batchOfIt()).toMatchObject({ hash: before.hash, attempts: 1 });
  await expectTruth(scene);
});

it("row 20: a reorg beyond finality is noticed, raises an alarm, and its transactions are applied again", async () => {
  const { cluster } = scene;
  const before = await cluster.alarms("reorganisation_beyond_finality");
  await (await startStory(scene)).done;
  await expectTruth(scene);
  const { rows } = await cluster.pool.query<{ block: string }>(
    "select max(block_number) as block from app.batch where state = 'final'",
  );
  await cluster.blocks.pause();
  const head = await cluster.publicClient.getBlockNumber({ cacheTime: 0 });
  await reorganise(Number(head) - Number(rows[0]?.block) + 2);
  await expectTruth(scene);
  expect(await cluster.alarms("reorganisation_beyond_finality")).toBeGreaterThan(before);
});
