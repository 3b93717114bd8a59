/** Gas, fees, replacement fees and calldata of a batch transaction. */

import { relayAbi } from "@working-contracts/protocol/abi";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { encodeFunctionData, type PublicClient } from "viem";
import type { Head } from "./context.js";

/** EIP-7825: maximum gas limit of a transaction. */
const MAX_TRANSACTION_GAS = 2 ** 24;
/** Maximum share of a block's gas per batch. Close to 100%, the batch would fit only into an empty block. */
const BLOCK_SHARE_PERCENT = 90n;
/** Gas `execute` uses before its first operation and after its last. */
const BATCH_OVERHEAD = 60_000;
/** The Relay requires 64/63 of the limit plus 12,000 (Relay.sol); its event and bookkeeping come on top. */
const OPERATION_OVERHEAD = 20_000;
/** Calldata (40 per byte, the EIP-7623 floor), its copy to memory, and memory expansion in a full batch. */
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

/** Gas one operation adds to a batch's gas limit. */
export function operationGas({ gasLimit, dataLength }: { gasLimit: number; dataLength: number }): number {
  return Math.ceil((gasLimit * 64) / 63) + OPERATION_OVERHEAD + dataLength * GAS_PER_BYTE;
}

/** Gas available to the operations of a batch that fits one transaction and a block like `head`. */
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

/**
 * Fees for a new transaction in wei; null if the cap does not cover the next block's base fee and the tip. A node that
 * lies about the base fee costs nothing, because blocks charge the real one. The tip is paid in full, so it has a cap.
 */
export async function estimateFees(
  publicClient: Pick<PublicClient, "estimateMaxPriorityFeePerGas">,
  { baseFeePerGas }: Pick<Head, "baseFeePerGas">,
  caps: Fees,
): Promise<Fees | null> {
  const suggested = await publicClient.estimateMaxPriorityFeePerGas().catch(() => FALLBACK_PRIORITY_FEE);
  const tip = min(suggested > 0n ? suggested : 1n, caps.maxPriorityFeePerGas);
  return cappedFees({ baseFeePerGas, tip, cap: caps.maxFeePerGas });
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** Twice the base fee plus tip, so that about six full blocks in a row do not price it out. */
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

/** Gas price of a transaction with these fees in a block with the base fee of `head`. */
export function effectiveGasPrice(
  { maxFeePerGas, maxPriorityFeePerGas }: Fees,
  { baseFeePerGas }: Pick<Head, "baseFeePerGas">,
): bigint {
  const wanted = baseFeePerGas + maxPriorityFeePerGas;
  return wanted < maxFeePerGas ? wanted : maxFeePerGas;
}

const MARKET_MULTIPLE = 8n;

/**
 * Fees of a replacement: 25% more on both fields (nodes require 12.5%), or market fees if those are higher. Null if the
 * caps leave no room for an increase that nodes accept, or if the fees are far above the market already: then another
 * reason keeps the transaction from its block, and its tip would be paid in full. The tip's cap does not depend on the
 * market, which a node can name as it likes.
 */
export function replacementFees({
  previous,
  market,
  caps,
}: {
  previous: Fees;
  market: Fees | null;
  caps: Fees;
}): Fees | null {
  const isDear = (name: keyof Fees) => market !== null && previous[name] >= MARKET_MULTIPLE * market[name];
  if (isDear("maxFeePerGas") && isDear("maxPriorityFeePerGas")) return null;
  const raise = (fee: bigint) => (fee * 125n + 99n) / 100n + 1n;
  const least = (fee: bigint) => (fee * 1125n + 999n) / 1000n + 1n;
  const max = (a: bigint, b: bigint) => (a > b ? a : b);

  const maxFeePerGas = min(max(raise(previous.maxFeePerGas), market?.maxFeePerGas ?? 0n), caps.maxFeePerGas);
  if (maxFeePerGas < least(previous.maxFeePerGas)) return null;
  const tip = max(raise(previous.maxPriorityFeePerGas), market?.maxPriorityFeePerGas ?? 0n);
  const maxPriorityFeePerGas = min(tip, min(maxFeePerGas, MARKET_MULTIPLE * caps.maxPriorityFeePerGas));
  if (maxPriorityFeePerGas < least(previous.maxPriorityFeePerGas)) return null;
  return { maxFeePerGas, maxPriorityFeePerGas };
}
