/**
 * Now, as the chain sees it: the newest block's time, moving on as time passes here until the next block. The host's
 * clock has no part in it, wherever it stands and however it is set.
 */
import type { Hash, PublicClient } from "viem";

export interface ChainHead {
  number: bigint;
  hash: Hash;
  timestamp: number;
  /** When this process first saw the block: milliseconds of `performance.now()`, which nobody sets. */
  seenAt: number;
}

export interface ChainClock {
  /** Seconds. Never goes back, but where the chain itself did (a reorganisation). Throws before the first refresh. */
  now(): number;
  /** Newest block seen so far. */
  head(): ChainHead | null;
  /** Reads the newest block at once; rejects where the node cannot be reached. */
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
    // Two questions may overlap: the answer to the older one must not look like a reorganisation.
    if (question < answered) return;
    answered = question;
    if (head !== null && block.hash === head.hash) return;
    const timestamp = Number(block.timestamp);
    const wentBack = head !== null && block.number <= head.number;
    head = { number: block.number, hash: block.hash, timestamp, seenAt: performance.now() };
    newest = wentBack ? timestamp : Math.max(newest, timestamp);
  };

  const poll = async (): Promise<void> => {
    // An unreachable node leaves the clock running; /ready reports the node itself.
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
