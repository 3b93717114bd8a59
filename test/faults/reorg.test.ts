/**
 * Rows 19 and 20: the chain takes blocks back. Guards: mined and final batches are compared with the chain at every
 * head; what lost its block is sent again, byte for byte; the escrow's state and the token's nonce let nothing apply
 * twice; the index follows by block hash.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { expectTruth, openScene, type Scene, seededRandom, startStory } from "./support/story.js";

const DEEPEST = 10;
let scene: Scene;

beforeAll(async () => {
  scene = await openScene("reorg", { env: { CONFIRMATIONS: String(DEEPEST + 2) } });
  // Deep enough that no reorganisation takes the agents' money with it: nobody would mint it again.
  await scene.cluster.testClient.mine({ blocks: 60 });
});
afterEach(() => scene.cluster.heal());
afterAll(() => scene?.cluster.stop());

async function reorganise(depth: number): Promise<void> {
  const { blocks } = scene.cluster;
  await blocks.pause();
  await scene.cluster.reorganise(depth);
  blocks.resume();
}

it.each([1, 2, 3])("row 19: reorganisations of 1 to 10 blocks in the middle, series %i", async (series) => {
  const random = seededRandom(series);
  const { done } = await startStory(scene, undefined, { mayGoBack: true });
  for (let times = 0; times < 4; times++) {
    await delay(300 + random(700));
    await reorganise(1 + random(DEEPEST));
  }
  await done;
  await expectTruth(scene);
});

it("row 20: a reorganisation beyond finality is noticed, with an alarm, and what it took is applied again", async () => {
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
