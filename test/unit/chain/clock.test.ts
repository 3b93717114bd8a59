import type { Block } from "viem";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ChainClock, createChainClock } from "../../../src/chain/clients.js";

const NOW = 1_800_000_000;

/** A node whose newest block the test sets. It responds when the test allows it. */
function fakeNode() {
  let block = { number: 1n, hash: "0x01", timestamp: BigInt(NOW) };
  const pending: (() => void)[] = [];
  let isHeld = false;
  return {
    mine(number: number, timestamp: number, hash = `0x0${number}`) {
      block = { number: BigInt(number), hash, timestamp: BigInt(timestamp) };
    },
    hold() {
      isHeld = true;
    },
    /** Completes the oldest held request. */
    answer(index = 0) {
      pending.splice(index, 1)[0]?.();
    },
    async getBlock(): Promise<Block> {
      const answer = block;
      if (isHeld) await new Promise<void>((resolve) => pending.push(resolve));
      return answer as unknown as Block;
    },
  };
}

describe("the chain clock", () => {
  let node: ReturnType<typeof fakeNode>;
  let clock: ChainClock;

  beforeEach(() => {
    vi.useFakeTimers({ now: 5_000_000 });
    node = fakeNode();
    clock = createChainClock({ publicClient: node as never });
  });
  afterEach(() => {
    clock.stop();
    vi.useRealTimers();
  });

  it("throws before it has seen a block", () => {
    expect(() => clock.now()).toThrow("before its first refresh");
  });

  it("returns the newest block's time, and advances as time passes until the next block", async () => {
    await clock.refresh();
    expect(clock.now()).toBe(NOW);
    vi.advanceTimersByTime(3500);
    expect(clock.now()).toBe(NOW + 3);
  });

  it("is unaffected when the host's clock is set", async () => {
    await clock.refresh();
    vi.setSystemTime(5_000_000 + 3_600_000);
    expect(clock.now()).toBe(NOW);
    vi.setSystemTime(0);
    expect(clock.now()).toBe(NOW);
  });

  it("does not go back if a block is older than the time already returned", async () => {
    await clock.refresh();
    vi.advanceTimersByTime(10_000);
    expect(clock.now()).toBe(NOW + 10);
    node.mine(2, NOW + 8);
    await clock.refresh();
    expect(clock.now()).toBe(NOW + 10);
    vi.advanceTimersByTime(4000);
    expect(clock.now()).toBe(NOW + 12);
  });

  it("knows the blocks that it saw 25 to 50 seconds ago, but none above the newest", async () => {
    await clock.refresh();
    for (const [number, known] of [
      [2, 0n],
      [3, 1n],
      [4, 1n],
      [5, 3n],
      [2, 2n],
    ] as const) {
      vi.advanceTimersByTime(15_000);
      node.mine(number, NOW + number, `0xa${number}`);
      await clock.refresh();
      expect(clock.knownBlock()).toBe(known);
    }
  });

  it("stops 15 seconds ahead of the newest block, and follows a chain that resumes at the time of its halt", async () => {
    await clock.refresh();
    vi.advanceTimersByTime(3_600_000);
    expect(clock.now()).toBe(NOW + 15);
    for (const [number, timestamp, now] of [
      [2, NOW + 2, NOW + 15],
      [3, NOW + 14, NOW + 15],
      [4, NOW + 16, NOW + 16],
    ] as const) {
      node.mine(number, timestamp);
      await clock.refresh();
      expect(clock.now()).toBe(now);
    }
    vi.advanceTimersByTime(2000);
    expect(clock.now()).toBe(NOW + 18);
  });

  it("goes back with a reorg", async () => {
    node.mine(7, NOW + 100);
    await clock.refresh();
    node.mine(6, NOW + 60, "0xaa");
    await clock.refresh();
    expect(clock.now()).toBe(NOW + 60);
  });

  it("does not mistake a late response for a reorg", async () => {
    await clock.refresh();
    node.hold();
    node.mine(2, NOW + 2);
    const older = clock.refresh();
    node.mine(3, NOW + 3);
    const newer = clock.refresh();
    node.answer(1);
    await newer;
    node.answer(0);
    await older;
    expect(clock.now()).toBe(NOW + 3);
    expect(clock.head()?.number).toBe(3n);
  });

  it("follows new blocks without a refresh", async () => {
    await vi.advanceTimersByTimeAsync(300);
    node.mine(2, NOW + 1000);
    await vi.advanceTimersByTimeAsync(1000);
    expect(clock.now()).toBe(NOW + 1000);
  });

  it("reads a block that it hears of at once, and at most four in a second", async () => {
    await vi.advanceTimersByTimeAsync(600);
    node.mine(2, NOW + 1000);
    clock.lookSoon();
    await vi.advanceTimersByTimeAsync(0);
    expect(clock.head()?.number).toBe(2n);

    const read = vi.spyOn(node, "getBlock");
    for (let i = 0; i < 100; i++) {
      clock.lookSoon();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(read).toHaveBeenCalledTimes(4);
  });

  it("looks again after a block that it hears of during a look", async () => {
    node.hold();
    await vi.advanceTimersByTimeAsync(300);
    node.mine(2, NOW + 1000);
    clock.lookSoon();
    node.answer();
    await vi.advanceTimersByTimeAsync(260);
    node.answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(clock.head()?.number).toBe(2n);
  });

  it("keeps running while the node is unreachable", async () => {
    await clock.refresh();
    node.getBlock = () => Promise.reject(new Error("connection refused"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(clock.now()).toBe(NOW + 5);
    await expect(clock.refresh()).rejects.toThrow("connection refused");
  });
});
