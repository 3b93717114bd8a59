/** Receipts, and whether the block that they name is in the chain that we see. */
import type { TransactionReceipt } from "viem";
import type { BatchAttempt } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";

/** Any attempt may have been included: they share a nonce, so at most one was. Rejects where the node cannot answer. */
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

/** Whether that block is in the chain; null where the node does not have it, which says nothing. */
export async function isCanonical(
  { publicClient }: Pick<SignerContext, "publicClient">,
  blockNumber: bigint,
  blockHash: string,
): Promise<boolean | null> {
  const block = await publicClient.getBlock({ blockNumber }).catch(() => null);
  return block === null ? null : block.hash === blockHash;
}

/** Whether `head` stands on that block: one beyond it, or of another branch, waits for a head that agrees with it. */
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
