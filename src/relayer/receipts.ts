/** Receipts, and whether their blocks are canonical. */
import type { TransactionReceipt } from "viem";
import type { BatchAttempt } from "../db/schema.js";
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
