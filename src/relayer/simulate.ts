/** Simulates each operation of a batch at a block, before its authorization leaves the process. */

import { relayAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import {
  BaseError,
  ContractFunctionZeroDataError,
  type Hex,
  type PublicClient,
  parseAbi,
  parseEventLogs,
  toHex,
} from "viem";
import { failedExecution } from "../chain/errors.js";
import type { Head } from "./context.js";
import type { OperationRow } from "./outbox.js";
import { batchGas, effectiveGasPrice, encodeBatch, type Fees } from "./transaction.js";

/** Selects the block by hash; a node that does not have it in its chain must return an error (EIP-1898). */
export const stateOf = ({ hash }: Pick<Head, "hash">) => ({ blockHash: hash, requireCanonical: true });

export type SimulationResult = { success: true } | { success: false; data: Hex; outOfGas: boolean };

type SimulatedOperation = Pick<OperationRow, "target" | "data" | "gasLimit">;

/** JSON-RPC: the method does not exist or is disabled. */
const METHOD_MISSING: ReadonlySet<number> = new Set([-32601, -32004]);
const PARALLEL_CALLS = 16;

interface SimulatedCall {
  status: Hex;
  gasUsed: Hex;
  logs?: { address: Hex; topics: [Hex, ...Hex[]]; data: Hex }[];
}

/**
 * Simulates the operations in sequence on the state of `head` at time `now`, each as a separate batch. The state is
 * selected by block hash, because nodes behind one URL can be on different branches. Rejects if the node fails or the
 * Relay itself reverts; neither says anything about an operation. On nodes without `eth_simulateV1`, each operation is
 * a separate `eth_call` and does not see the effects of those before it.
 */
export async function simulateOperations({
  publicClient,
  signer,
  relay,
  operations,
  head,
  now,
  fees,
}: {
  publicClient: PublicClient;
  signer: Address;
  relay: Address;
  operations: readonly SimulatedOperation[];
  head: Pick<Head, "hash" | "timestamp" | "baseFeePerGas">;
  /** Expected block time of the batch, in seconds. */
  now: number;
  /** The batch's fees. Nodes simulate at gas price 0 otherwise, which tells a contract it is a simulation. */
  fees: Fees;
}): Promise<SimulationResult[]> {
  const gasPrice = toHex(effectiveGasPrice(fees, head));
  const calls = operations.map((operation) => ({
    from: signer,
    to: relay,
    data: encodeBatch([operation]),
    gas: toHex(batchGas([operation])),
    gasPrice,
  }));
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
    return callOneByOne({ publicClient, relay, operations, head, gasPrice });
  }
}

function readSimulated(relay: Address, call: SimulatedCall, gasLimit: number): SimulationResult {
  if (BigInt(call.status) !== 1n) throw new Error("the Relay reverted a simulated batch");
  const logs = (call.logs ?? []).filter(({ address }) => address.toLowerCase() === relay);
  const [failure] = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs: logs as never });
  if (failure === undefined) return { success: true };
  const data = failure.args.reason;
  return { success: false, data, outOfGas: data === "0x" && BigInt(call.gasUsed) >= BigInt(gasLimit) };
}

async function callOneByOne({
  publicClient,
  relay,
  operations,
  head,
  gasPrice,
}: {
  publicClient: PublicClient;
  relay: Address;
  operations: readonly SimulatedOperation[];
  head: Pick<Head, "hash">;
  gasPrice: Hex;
}): Promise<SimulationResult[]> {
  const at = stateOf(head);
  // The Relay has no money to pay for gas with.
  const rich = { [relay]: { balance: toHex(2n ** 100n) } };
  const ask = async ({ target, data, gasLimit }: SimulatedOperation): Promise<SimulationResult> => {
    const to = target as Address;
    const code = await publicClient.request({ method: "eth_getCode", params: [to, at] });
    if (code === "0x") return { success: false, data: "0x", outOfGas: false };
    try {
      const gas = toHex(batchGas([{ target, data, gasLimit }]));
      const call = { from: relay, to, data: data as Hex, gas, gasPrice };
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

const pausableAbi = parseAbi(["function paused() view returns (bool)"]);

/** Whether the token refuses all transfers. One without `paused()` does not; node errors are thrown. */
export async function isPaused(
  publicClient: PublicClient,
  token: Address,
  at: ReturnType<typeof stateOf> | { blockTag: "latest" },
): Promise<boolean> {
  try {
    return await publicClient.readContract({
      address: token,
      abi: pausableAbi,
      functionName: "paused",
      ...at,
    });
  } catch (error) {
    const isEmpty =
      error instanceof BaseError &&
      error.walk((cause) => cause instanceof ContractFunctionZeroDataError) !== null;
    if (isEmpty || failedExecution(error) !== null) return false;
    throw error;
  }
}

function isMethodMissing(error: unknown): boolean {
  return (
    error instanceof BaseError &&
    error.walk((cause) => METHOD_MISSING.has((cause as { code?: number }).code ?? 0)) !== null
  );
}
