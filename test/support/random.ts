/** Seeded randomness: the same seed gives the same sequence of choices. */

export type Chance = ReturnType<typeof createChance>;

/** The generator "mulberry32". */
export function createChance(seed: number) {
  let state = seed >>> 0;
  /** 0 up to 1, exclusive. */
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  /** Whole number from `low` to `high`, both included. */
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    pick: <T>(from: readonly T[]): T => from[between(0, from.length - 1)] as T,
    /** True with this probability. */
    hits: (probability: number): boolean => next() < probability,
    /** One of the keys, with a probability in proportion to its weight. */
    weighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
      const entries = Object.entries(weights) as [K, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [key, weight] of entries) {
        left -= weight;
        if (left < 0) return key;
      }
      return (entries.at(-1) as [K, number])[0];
    },
  };
}
