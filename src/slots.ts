/** Concurrency limits. */

/** Runs at most `count` tasks at once, the rest in order. */
export function createSlots(count: number): <T>(task: () => Promise<T>) => Promise<T> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

/**
 * Runs at most `count` tasks at once, and at most one of each key. Keys take turns: a key with many tasks delays only
 * its own. `refuse` throws if too many tasks wait.
 */
export function createFairSlots(
  count: number,
  options: { maxWaiting: number; maxWaitingPerKey: number; refuse: () => never },
): <T>(key: string, task: () => Promise<T>) => Promise<T> {
  const running = new Set<string>();
  /** In the order of turns. */
  const queues = new Map<string, (() => void)[]>();
  let waiting = 0;

  const startNext = (): void => {
    for (const [key, queue] of queues) {
      if (running.size >= count) return;
      if (running.has(key)) continue;
      running.add(key);
      waiting -= 1;
      queues.delete(key);
      const start = queue.shift();
      if (queue.length > 0) queues.set(key, queue);
      start?.();
    }
  };

  return async (key, task) => {
    const queue = queues.get(key) ?? [];
    if (running.size >= count || running.has(key)) {
      if (waiting >= options.maxWaiting || queue.length >= options.maxWaitingPerKey) options.refuse();
      queues.set(key, queue);
      waiting += 1;
      await new Promise<void>((resolve) => queue.push(resolve));
    } else running.add(key);
    try {
      return await task();
    } finally {
      running.delete(key);
      startNext();
    }
  };
}
