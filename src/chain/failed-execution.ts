/** Reads from a node's error whether the contract reverted or the node itself failed. */
import { BaseError, type Hex, isHex, RpcRequestError } from "viem";

/** JSON-RPC: the execution was reverted. */
const EXECUTION_REVERTED = 3;
/**
 * How geth, reth, Erigon, Nethermind, Besu and anvil report a revert under other codes, and other failed executions.
 */
const EXECUTION_FAILED =
  /revert|out ?of ?gas|gas required exceeds|invalid (opcode|jump)|bad (instruction|jump)|stack (under|over|limit)|write protection|return data out of bounds|gas uint64 overflow|max call depth|(evm|vm execution) error/i;
const OUT_OF_GAS = /out ?of ?gas|gas required exceeds/i;

export interface FailedExecution {
  /** Revert data; `0x` if there is none. */
  data: Hex;
  outOfGas: boolean;
}

/**
 * Returns how the contract failed; null if the error is about the node, for example because it is unreachable or
 * rejects the request. viem's error classes cannot be used: its contract functions treat every internal error (-32603)
 * as a revert.
 */
export function failedExecution(error: unknown): FailedExecution | null {
  const cause =
    error instanceof BaseError ? error.walk((inner) => inner instanceof RpcRequestError) : undefined;
  if (!(cause instanceof RpcRequestError)) return null;
  const { code, data, details } = cause;
  if (code !== EXECUTION_REVERTED && !EXECUTION_FAILED.test(details)) return null;
  return { data: isHex(data) ? data : "0x", outOfGas: OUT_OF_GAS.test(details) };
}
