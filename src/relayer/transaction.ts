/** A batch as a transaction: gas, fees, replacement fees, calldata. */

import { relayAbi } from "@working-contracts/protocol/abi";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { encodeFunctionData, type PublicClient } from "viem";
import type { Head } from "./context.js";

/** EIP-7825: no transaction may ask for more. */
const MAX_TRANSACTION_GAS = 2 ** 24;
/** Part of a block that one batch may ask for; a fuller block would have to be empty to take it. */
const BLOCK_SHARE_PERCENT = 90n;
/** What `execute` needs before its first operation and after its last. */
const BATCH_OVERHEAD = 60_000;
/** The Relay asks for 64/63 of the limit and 12,000 (Relay.sol); its event and own steps come on top. */
const OPERATION_OVERHEAD = 20_000;
/** Calldata (40 a byte by EIP-7623's floor), its copy to memory, and the memory's growth in a full batch. */
const GAS_PER_BYTE = 48;
const FALLBACK_PRIORITY_FEE = 1_000_000_000n;

export interface Fees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

export interface RelayedCall {
  target: string;
  gasLimit: number;
  data: string;
}

/** What one operation adds to a batch's gas limit. */
export function operationGas({ gasLimit, dataLength }: { gasLimit: number; dataLength: number }): number {
  return Math.ceil((gasLimit * 64) / 63) + OPERATION_OVERHEAD + dataLength * GAS_PER_BYTE;
}

/** Gas for operations in a batch that fits one transaction and a block like `head`. */
export function gasBudget(head: Pick<Head, "gasLimit">): number {
  const ofBlock = Number((head.gasLimit * BLOCK_SHARE_PERCENT) / 100n);
  return Math.min(MAX_TRANSACTION_GAS, ofBlock) - BATCH_OVERHEAD;
}

export function batchGas(calls: readonly RelayedCall[]): bigint {
  const gas = calls.reduce(
    (sum, { gasLimit, data }) => sum + operationGas({ gasLimit, dataLength: byteLength(data) }),
    BATCH_OVERHEAD,
  );
  return BigInt(Math.min(gas, MAX_TRANSACTION_GAS));
}

export function encodeBatch(calls: readonly RelayedCall[]): Hex {
  return encodeFunctionData({
    abi: relayAbi,
    functionName: "execute",
    args: [
      calls.map(({ target, gasLimit, data }) => ({
        target: target as Address,
        gasLimit,
        data: data as Hex,
      })),
    ],
  });
}

export function byteLength(data: string): number {
  return (data.length - 2) / 2;
}

/** Fees for a new transaction; null where even the next block's base fee is beyond `cap`. */
export async function estimateFees(
  publicClient: PublicClient,
  head: Pick<Head, "baseFeePerGas">,
  cap: bigint,
): Promise<Fees | null> {
  const suggested = await publicClient.estimateMaxPriorityFeePerGas().catch(() => FALLBACK_PRIORITY_FEE);
  return cappedFees({ baseFeePerGas: head.baseFeePerGas, tip: suggested > 0n ? suggested : 1n, cap });
}

/** Doubled base fee plus tip, so that six full blocks in a row do not price it out. */
export function cappedFees({
  baseFeePerGas,
  tip,
  cap,
}: {
  baseFeePerGas: bigint;
  tip: bigint;
  cap: bigint;
}): Fees | null {
  const lowest = (baseFeePerGas * 9n) / 8n + tip;
  if (lowest > cap) return null;
  const wanted = baseFeePerGas * 2n + tip;
  return { maxFeePerGas: wanted > cap ? cap : wanted, maxPriorityFeePerGas: tip };
}

/**
 * Fees of a replacement: a quarter more on both fields (nodes want an eighth), or the market's where that is higher.
 * Null where `cap` leaves no room for a step that nodes accept.
 */
export function replacementFees({
  previous,
  market,
  cap,
}: {
  previous: Fees;
  market: Fees | null;
  cap: bigint;
}): Fees | null {
  const raise = (fee: bigint) => (fee * 125n + 99n) / 100n + 1n;
  const least = (fee: bigint) => (fee * 1125n + 999n) / 1000n + 1n;
  const max = (a: bigint, b: bigint) => (a > b ? a : b);
  const min = (a: bigint, b: bigint) => (a < b ? a : b);

  const maxFeePerGas = min(max(raise(previous.maxFeePerGas), market?.maxFeePerGas ?? 0n), cap);
  if (maxFeePerGas < least(previous.maxFeePerGas)) return null;
  const tip = max(raise(previous.maxPriorityFeePerGas), market?.maxPriorityFeePerGas ?? 0n);
  const maxPriorityFeePerGas = min(tip, maxFeePerGas);
  if (maxPriorityFeePerGas < least(previous.maxPriorityFeePerGas)) return null;
  return { maxFeePerGas, maxPriorityFeePerGas };
}
