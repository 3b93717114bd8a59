/** A concurrency limit: runs at most `count` tasks at once, the rest in order. `refuse` throws if too many wait. */
export function createSlots(
  count: number,
  { maxWaiting = Number.POSITIVE_INFINITY, refuse }: { maxWaiting?: number; refuse?: () => never } = {},
): <T>(task: () => Promise<T>) => Promise<T> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (free > 0) free -= 1;
    else {
      if (waiting.length >= maxWaiting) refuse?.();
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
