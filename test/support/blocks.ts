/** When a test chain makes blocks: tests stop it for a while, or make all of its blocks themselves. */
import { setTimeout as delay } from "node:timers/promises";
import type { TestClient } from "viem";

/** Between the empty blocks of a chain that mines each transaction at once: each costs every process work. */
export const BLOCK_SECONDS = 3;

/** Makes blocks one at a time: anvil may break its state when two ways of mining, or a reorganization, overlap. */
export function createBlockProducer(mine: () => Promise<unknown>, intervalMs: number) {
  let stopped = false;
  let turn: Promise<unknown> = Promise.resolve();
  /** Makes one block, also while paused. */
  const next = (): Promise<unknown> => {
    turn = turn.then(mine, mine);
    return turn;
  };
  const produce = async (): Promise<void> => {
    while (!stopped) {
      await next().catch(() => {});
      await delay(intervalMs, undefined, { ref: false });
    }
  };
  let running = produce();
  return {
    next,
    /** Resolves once no block is being made. */
    async pause(): Promise<void> {
      stopped = true;
      await running;
    },
    resume(): void {
      if (!stopped) return;
      stopped = false;
      running = produce();
    },
  };
}

/** Of chains that were paused, by URL: anvil itself cannot be told again to mine in both ways. */
const resumed = new Map<string, ReturnType<typeof createBlockProducer>>();

/** No block is made until `resumeBlocks`; transactions wait. */
export async function pauseBlocks(testClient: TestClient): Promise<void> {
  await resumed.get(testClient.transport.url)?.pause();
  await testClient.setIntervalMining({ interval: 0 });
}

/** Blocks as before: one for each transaction, and empty ones. */
export async function resumeBlocks(testClient: TestClient): Promise<void> {
  const { url } = testClient.transport;
  await testClient.setAutomine(true);
  const producer = resumed.get(url);
  if (producer !== undefined) return producer.resume();
  const mine = (): Promise<unknown> => testClient.mine({ blocks: 1 });
  resumed.set(url, createBlockProducer(mine, BLOCK_SECONDS * 1000));
}
