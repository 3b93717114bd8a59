import type { Hex } from "@working-contracts/protocol/types";

/** A repeatable source of random choices (mulberry32). */
export interface Random {
  /** Integer from 0 to `limit` - 1. */
  below: (limit: number) => number;
  pick: <T>(choices: readonly T[]) => T;
  chance: (percent: number) => boolean;
  hex: (bytes: number) => Hex;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: (choices) => choices[below(choices.length)] as (typeof choices)[number],
    chance: (percent) => below(100) < percent,
    hex: (bytes) =>
      `0x${Array.from({ length: bytes }, () => below(256).toString(16).padStart(2, "0")).join("")}`,
  };
}
