/** Reads from the chain what became of a transaction: its receipt, its block, or what used its account nonce instead. */
import type { TransactionReceipt } from "viem";
import type { BatchAttempt, batch } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";

/** Checks every attempt: they share a nonce, so at most one was included. Rejects if the node does not respond. */
export async function findReceipt(
  { publicClient }: Pick<SignerContext, "publicClient">,
  attempts: readonly Pick<BatchAttempt, "hash">[],
): Promise<TransactionReceipt | null> {
  for (const { hash } of [...attempts].reverse()) {
    const receipt = await publicClient.getTransactionReceipt({ hash }).catch((error: Error) => {
      if (error.name === "TransactionReceiptNotFoundError") return null;
      throw error;
    });
    if (receipt !== null) return receipt;
  }
  return null;
}

/** Whether this block is canonical; null if the node does not have it, which proves nothing. */
export async function isCanonical(
  { publicClient }: Pick<SignerContext, "publicClient">,
  blockNumber: bigint,
  blockHash: string,
): Promise<boolean | null> {
  const block = await publicClient.getBlock({ blockNumber }).catch(() => null);
  return block === null ? null : block.hash === blockHash;
}

/** Whether `head` builds on this block. If not (above `head`, or on another branch), wait for a head that does. */
export async function isTrusted(
  context: Pick<SignerContext, "publicClient">,
  { number, hash }: { number: bigint; hash: string },
  head: Head,
): Promise<boolean> {
  if (number >= head.number) return hash === head.hash;
  return (await isCanonical(context, number, hash)) === true;
}

/** The block that a receipt names. */
export function placeOf({ blockNumber, blockHash }: TransactionReceipt): { number: bigint; hash: string } {
  return { number: blockNumber, hash: blockHash };
}

/** A reorg can include a transaction in a block below the one at which it was signed. */
const REORGANISATION_MARGIN = 64n;
const BLOCKS_PER_ROUND = 200n;
/** They arrive in one response, whose size is limited (clients.ts). */
const PARALLEL_BLOCKS = 4n;

interface NonceUse {
  blockNumber: bigint;
  isOurs: boolean;
}

/**
 * Finds the transaction that used an account nonce by reading blocks, because a missing receipt proves nothing.
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
