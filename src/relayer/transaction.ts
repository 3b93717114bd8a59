/**
 * A batch's transaction and the chain: gas, fees and calldata; the simulation of its operations before an authorization
 * leaves the process; and its fate, by its receipt, its block, or what used its account nonce instead.
 */
import { relayAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import {
  BaseError,
  concatHex,
  encodeFunctionData,
  encodePacked,
  type Hex,
  type PublicClient,
  parseEventLogs,
  prepareEncodeFunctionData,
  type TransactionReceipt,
  toHex,
} from "viem";
import { isCanonical, MAX_AHEAD_OF_HEAD } from "../chain/clients.js";
import { failedExecution } from "../chain/errors.js";
import { REORG_DEPTH } from "../db/onchain.js";
import type { BatchAttempt, BatchRow } from "../db/schema.js";
import type { Head, SignerContext } from "./context.js";
import type { OperationRow } from "./outbox.js";

/** EIP-7825: maximum gas limit of a transaction. */
export const MAX_TRANSACTION_GAS = 2 ** 24;
/** Maximum share of a block's gas per batch. Close to 100%, the batch would fit only into an empty block. */
const BLOCK_SHARE_PERCENT = 90n;
/** Gas `execute` uses before its first operation and after its last. */
const BATCH_OVERHEAD = 60_000;
/** The Relay requires 64/63 of the limit plus 12,000 (Relay.sol); its event and bookkeeping come on top. */
const OPERATION_OVERHEAD = 20_000;
/** Calldata (40 per byte, the EIP-7623 floor), its copy to memory, and memory expansion in a full batch. */
const GAS_PER_BYTE = 48;
/** Nodes refuse transactions above 128 KiB, and a signer could send nothing behind one that every node refuses. */
export const MAX_BATCH_BYTES = 120_000;
const FALLBACK_PRIORITY_FEE = 1_000_000_000n;

export interface Fees {
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
}

type RelayedCall = Pick<OperationRow, "target" | "gasLimit" | "data">;

/** Gas one operation adds to a batch's gas limit. */
export function operationGas({ gasLimit, dataLength }: { gasLimit: number; dataLength: number }): number {
  return Math.ceil((gasLimit * 64) / 63) + OPERATION_OVERHEAD + dataLength * GAS_PER_BYTE;
}

/** Bytes one operation adds to a batch's calldata: its target, gas limit and length (IRelay.sol) are in front. */
export const operationBytes = ({ dataLength }: { dataLength: number }): number => 20 + 4 + 3 + dataLength;

/** Gas available to the operations of a batch that fits one transaction and a block like `head`. */
export function batchGasLimit(head: Pick<Head, "gasLimit">): number {
  const ofBlock = Number((head.gasLimit * BLOCK_SHARE_PERCENT) / 100n);
  return Math.min(MAX_TRANSACTION_GAS, ofBlock) - BATCH_OVERHEAD;
}

/** Gas limit of the transaction that carries these calls: at most that of a transaction, even if they need more. */
export function batchGas(calls: readonly RelayedCall[]): bigint {
  const gas = calls.reduce(
    (sum, { gasLimit, data }) => sum + operationGas({ gasLimit, dataLength: byteLength(data) }),
    BATCH_OVERHEAD,
  );
  return BigInt(Math.min(gas, MAX_TRANSACTION_GAS));
}

const execute = prepareEncodeFunctionData({ abi: relayAbi, functionName: "execute" });

/** Calldata for `Relay.execute`, whose packed layout IRelay.sol describes. */
export function encodeBatch(calls: readonly RelayedCall[]): Hex {
  const packed = calls.map(({ target, gasLimit, data }) =>
    encodePacked(["address", "uint32", "uint24", "bytes"], [target, gasLimit, byteLength(data), data]),
  );
  return encodeFunctionData({ ...execute, args: [concatHex(packed)] });
}

/** Bytes of `0x` hex. */
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
  const cap = caps.maxFeePerGas;
  const lowest = (baseFeePerGas * 9n) / 8n + tip;
  if (lowest > cap) return null;
  // So that about six full blocks in a row do not price it out.
  const wanted = baseFeePerGas * 2n + tip;
  return { maxFeePerGas: min(wanted, cap), maxPriorityFeePerGas: tip };
}

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** The most that a transaction can cost, in wei: nodes require this balance. */
export function maxCostOf(attempt: Pick<BatchAttempt, "gas" | "maxFeePerGas"> | undefined): bigint {
  return attempt === undefined ? 0n : BigInt(attempt.gas) * BigInt(attempt.maxFeePerGas);
}

const MARKET_MULTIPLE = 8n;

/**
 * Fees of a replacement: 25% more on both fields (nodes require 12.5%), or market fees if those are higher. Null if the
 * caps leave no room for an increase that nodes accept, or if the fees are far above the market already (see "Replacements
 * stop at eight times the market" in docs/decisions.md).
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

/** Selects the block by hash; a node that does not have it in its chain must return an error (EIP-1898). */
export const stateOf = ({ hash }: Pick<Head, "hash">) => ({ blockHash: hash, requireCanonical: true });

export type SimulationResult = { success: true } | { success: false; data: Hex; outOfGas: boolean };

/** JSON-RPC: the method does not exist or is disabled. */
const METHOD_MISSING: ReadonlySet<number> = new Set([-32601, -32004]);
const PARALLEL_CALLS = 16;

interface SimulatedCall {
  status: Hex;
  gasUsed: Hex;
  logs?: { address: Hex; topics: [Hex, ...Hex[]]; data: Hex }[];
}

/**
 * Simulates the operations in sequence on the state of `head` at the batch's expected time, each as a separate batch. The
 * state is selected by block hash, because nodes behind one URL can be on different branches. Rejects if the node fails or
 * the Relay itself reverts; neither says anything about an operation. On nodes without `eth_simulateV1`, each operation is
 * a separate `eth_call` and does not see the effects of those before it.
 */
export async function simulateOperations(
  context: SignerContext,
  operations: readonly OperationRow[],
  { head, fees }: { head: Head; fees: Fees },
): Promise<SimulationResult[]> {
  const { publicClient, clock, signer, deployment } = context;
  const { relay } = deployment;
  // Nodes simulate at gas price 0 otherwise, which tells a contract that it is a simulation.
  const gasPrice = toHex(min(head.baseFeePerGas + fees.maxPriorityFeePerGas, fees.maxFeePerGas));
  const calls = operations.map((operation) => ({
    from: signer,
    to: relay,
    data: encodeBatch([operation]),
    gas: toHex(batchGas([operation])),
    gasPrice,
  }));
  const now = Math.min(clock.now(), head.timestamp + MAX_AHEAD_OF_HEAD);
  const blockOverrides = {
    time: toHex(Math.max(now, head.timestamp + 1)),
    baseFeePerGas: toHex(head.baseFeePerGas),
  };
  try {
    const [block] = (await publicClient.request({
      method: "eth_simulateV1",
      params: [{ blockStateCalls: [{ calls, blockOverrides }], validation: false }, stateOf(head)],
    } as never)) as { calls: SimulatedCall[] }[];
    if (block?.calls.length !== operations.length) throw new Error("eth_simulateV1 omitted calls");
    return block.calls.map((call, index) => readSimulated(relay, call, operations[index]?.gasLimit ?? 0));
  } catch (error) {
    if (!isMethodMissing(error)) throw error;
    return callOneByOne(context, operations, { head, gasPrice });
  }
}

function readSimulated(relay: Address, call: SimulatedCall, gasLimit: number): SimulationResult {
  if (BigInt(call.status) !== 1n) throw new Error("the Relay reverted a simulated batch");
  const logs = (call.logs ?? []).filter(({ address }) => address.toLowerCase() === relay);
  if (logs.length === 0) return { success: true };
  const [failure] = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs: logs as never });
  if (failure === undefined) return { success: true };
  const data = failure.args.reason;
  return { success: false, data, outOfGas: data === "0x" && BigInt(call.gasUsed) >= BigInt(gasLimit) };
}

async function callOneByOne(
  { publicClient, deployment: { relay } }: SignerContext,
  operations: readonly OperationRow[],
  { head, gasPrice }: { head: Head; gasPrice: Hex },
): Promise<SimulationResult[]> {
  const at = stateOf(head);
  // The Relay has no money to pay for gas with.
  const rich = { [relay]: { balance: toHex(2n ** 100n) } };
  const ask = async (operation: OperationRow): Promise<SimulationResult> => {
    const to = operation.target;
    const code = await publicClient.request({ method: "eth_getCode", params: [to, at] });
    if (code === "0x") return { success: false, data: "0x", outOfGas: false };
    try {
      const gas = toHex(batchGas([operation]));
      const call = { from: relay, to, data: operation.data, gas, gasPrice };
      await publicClient.request({ method: "eth_call", params: [call, at, rich] });
      return { success: true };
    } catch (error) {
      const failure = failedExecution(error);
      if (failure === null) throw error;
      return { success: false, ...failure };
    }
  };
  const results: SimulationResult[] = [];
  for (let start = 0; start < operations.length; start += PARALLEL_CALLS) {
    results.push(...(await Promise.all(operations.slice(start, start + PARALLEL_CALLS).map(ask))));
  }
  return results;
}

function isMethodMissing(error: unknown): boolean {
  return (
    error instanceof BaseError &&
    error.walk((cause) => METHOD_MISSING.has((cause as { code?: number }).code ?? 0)) !== null
  );
}

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

export interface BlockRef {
  blockNumber: bigint;
  blockHash: string;
}

/** Whether `head` builds on this block. If not (above `head`, or on another branch), wait for a head that does. */
export async function isAncestor(
  context: Pick<SignerContext, "publicClient">,
  { blockNumber, blockHash }: BlockRef,
  head: Head,
): Promise<boolean> {
  if (blockNumber >= head.number) return blockHash === head.hash;
  return (await isCanonical(context, blockNumber, blockHash)) === true;
}

const BLOCKS_PER_ROUND = 200n;
/** They arrive in one response, whose size is limited (clients.ts). */
const PARALLEL_BLOCKS = 4n;

/**
 * Finds the transaction that used an account nonce by reading blocks, because a missing receipt proves nothing.
 * Searches the blocks since the batch was signed, a limited number per call. Returns null while blocks remain, and
 * `not found` if none contains the transaction; the next call then starts from scratch.
 */
export async function findNonceUse(
  { publicClient, signer, memory }: SignerContext,
  { id, accountNonce, attempts }: Pick<BatchRow, "id" | "accountNonce" | "attempts">,
  head: Head,
) {
  const signedAt = BigInt(attempts[0]?.signedAtBlock ?? 0);
  // A reorg can include a transaction in a block below the one at which it was signed.
  const first = signedAt > REORG_DEPTH ? signedAt - REORG_DEPTH : 0n;
  const from = memory.searchedTo.get(id) ?? first;
  const end = min(head.number + 1n, from + BLOCKS_PER_ROUND);
  for (let next = from; next < end; next += PARALLEL_BLOCKS) {
    const length = Number(min(PARALLEL_BLOCKS, end - next));
    const numbers = Array.from({ length }, (_, i) => next + BigInt(i));
    const blocks = await Promise.all(
      numbers.map((blockNumber) => publicClient.getBlock({ blockNumber, includeTransactions: true })),
    );
    for (const { number, transactions } of blocks) {
      const used = transactions.find(
        (one) => one.nonce === accountNonce && one.from.toLowerCase() === signer,
      );
      if (used === undefined) continue;
      return { blockNumber: number, isOurs: attempts.some(({ hash }) => hash === used.hash) };
    }
  }
  if (end <= head.number) {
    memory.searchedTo.set(id, end);
    return null;
  }
  memory.searchedTo.delete(id);
  return "not found";
}
