/** What a node's error says of the call that it was asked to carry out. */
import { BaseError, type Hex, isHex, RpcRequestError } from "viem";

/** JSON-RPC: the execution was reverted. */
const EXECUTION_REVERTED = 3;
/** How nodes (geth, reth, Erigon, Nethermind, Besu, anvil) call it under other codes, and other ends of an execution. */
const EXECUTION_FAILED =
  /revert|out ?of ?gas|gas required exceeds|invalid (opcode|jump)|bad (instruction|jump)|stack (under|over|limit)|write protection|return data out of bounds|gas uint64 overflow|max call depth|(evm|vm execution) error/i;
const OUT_OF_GAS = /out ?of ?gas|gas required exceeds/i;

export interface FailedExecution {
  /** What the contract returned. */
  data: Hex;
  outOfGas: boolean;
}

/**
 * How the contract ended the call; null where the error says nothing of it, as of a node that is out of reach, refuses
 * or breaks. viem's classes do not tell: its contract functions call every internal error (-32603) a revert.
 */
export function failedExecution(error: unknown): FailedExecution | null {
  const cause =
    error instanceof BaseError ? error.walk((inner) => inner instanceof RpcRequestError) : undefined;
  if (!(cause instanceof RpcRequestError)) return null;
  const { code, data, details } = cause;
  if (code !== EXECUTION_REVERTED && !EXECUTION_FAILED.test(details)) return null;
  return { data: isHex(data) ? data : "0x", outOfGas: OUT_OF_GAS.test(details) };
}
