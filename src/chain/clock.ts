/**
 * The chain's clock: the newest block's timestamp plus the time elapsed since this process saw that block. It never
 * reads the host's wall clock, which can be wrong.
 */
import type { Hash, PublicClient } from "viem";

export interface ChainHead {
  number: bigint;
  hash: Hash;
  timestamp: number;
  /** When this process first saw the block, in milliseconds of the monotonic `performance.now()`. */
  seenAt: number;
}

export interface ChainClock {
  /** Seconds. Moves backwards only in a reorg. Throws before the first refresh. */
  now(): number;
  /** Newest block seen so far. */
  head(): ChainHead | null;
  /** Reads the newest block immediately; rejects if the node is unreachable. */
  refresh(): Promise<void>;
  stop(): void;
}

const POLLING_INTERVAL_MS = 250;

export function createChainClock({
  publicClient,
  pollingIntervalMs = POLLING_INTERVAL_MS,
}: {
  publicClient: Pick<PublicClient, "getBlock">;
  pollingIntervalMs?: number;
}): ChainClock {
  let head: ChainHead | null = null;
  let newest = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let asked = 0;
  let answered = 0;

  const observe = async (): Promise<void> => {
    const question = ++asked;
    const block = await publicClient.getBlock({ blockTag: "latest" });
    // Two requests can overlap: the older one's response must not look like a reorg.
    if (question < answered) return;
    answered = question;
    if (head !== null && block.hash === head.hash) return;
    const timestamp = Number(block.timestamp);
    const wentBack = head !== null && block.number <= head.number;
    head = { number: block.number, hash: block.hash, timestamp, seenAt: performance.now() };
    newest = wentBack ? timestamp : Math.max(newest, timestamp);
  };

  const poll = async (): Promise<void> => {
    // The clock keeps running while the node is unreachable; /ready reports the node.
    await observe().catch(() => undefined);
    if (!stopped) timer = setTimeout(poll, pollingIntervalMs).unref();
  };
  timer = setTimeout(poll, pollingIntervalMs).unref();

  return {
    now() {
      if (head === null) throw new Error("The chain clock was read before its first refresh.");
      newest = Math.max(newest, head.timestamp + Math.floor((performance.now() - head.seenAt) / 1000));
      return newest;
    },
    head: () => head,
    refresh: observe,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
