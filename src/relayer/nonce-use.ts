/** Finds the transaction that used an account nonce by reading blocks, because a missing receipt proves nothing. */
import type { batch } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";

/** A reorg can include a transaction in a block below the one at which it was signed. */
const REORGANISATION_MARGIN = 64n;
const BLOCKS_PER_ROUND = 200n;
/** They arrive in one response, whose size is limited (transport.ts). */
const PARALLEL_BLOCKS = 4n;

export interface NonceUse {
  blockNumber: bigint;
  isOurs: boolean;
}

/**
 * Searches the blocks since the batch was signed, a limited number per call. Returns null while blocks remain, and
 * `not found` if none contains the transaction; the next call then starts from scratch.
 */
export async function findNonceUse(
  { publicClient, signer, memory }: SignerContext,
  { id, accountNonce, attempts }: Pick<typeof batch.$inferSelect, "id" | "accountNonce" | "attempts">,
  head: Head,
): Promise<NonceUse | "not found" | null> {
  const signedAt = BigInt(attempts[0]?.signedAtBlock ?? 0);
  const first = signedAt > REORGANISATION_MARGIN ? signedAt - REORGANISATION_MARGIN : 0n;
  let next = memory.searchedTo.get(id) ?? first;
  const stop = next + BLOCKS_PER_ROUND;
  while (next <= head.number) {
    if (next >= stop) {
      memory.searchedTo.set(id, next);
      return null;
    }
    const numbers: bigint[] = [];
    for (let n = next; n <= head.number && n < next + PARALLEL_BLOCKS; n += 1n) numbers.push(n);
    const blocks = await Promise.all(
      numbers.map((blockNumber) => publicClient.getBlock({ blockNumber, includeTransactions: true })),
    );
    for (const { number, transactions } of blocks) {
      const used = transactions.find(
        ({ from, nonce }) => nonce === accountNonce && from.toLowerCase() === signer,
      );
      if (used === undefined) continue;
      return { blockNumber: number, isOurs: attempts.some(({ hash }) => hash === used.hash) };
    }
    next += PARALLEL_BLOCKS;
  }
  memory.searchedTo.delete(id);
  return "not found";
}
