import type { Address, Hex } from "@working-contracts/protocol/types";
import { BaseError, ContractFunctionZeroDataError, type PublicClient, parseAbi } from "viem";
import { failedExecution } from "./errors.js";

/** Functions and events of a token that the service uses: EIP-20, EIP-3009 with `bytes` signatures, and its EIP-712 domain. */
export const tokenAbi = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function balanceOf(address account) view returns (uint256)",
  "function paused() view returns (bool)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);

type Client = Pick<PublicClient, "readContract">;

/** Whether this authorization has been used or cancelled. */
export function isUsed(
  client: Client,
  token: Address,
  { from, nonce }: { from: Address; nonce: Hex },
  at?: { blockHash: Hex; requireCanonical: boolean },
): Promise<boolean> {
  const call = { address: token, abi: tokenAbi, functionName: "authorizationState" } as const;
  return client.readContract({ ...call, args: [from, nonce], ...at });
}

/** In base units, at the newest block. Rejects if the node does not respond. */
export const balanceOf = (client: Client, token: Address, account: Address): Promise<bigint> =>
  client.readContract({ address: token, abi: tokenAbi, functionName: "balanceOf", args: [account] });

/** Whether the token refuses all transfers. One without `paused()` does not; node errors are thrown. */
export async function isPaused(
  publicClient: PublicClient,
  token: Address,
  at: { blockHash: Hex; requireCanonical: boolean },
): Promise<boolean> {
  try {
    return await publicClient.readContract({ address: token, abi: tokenAbi, functionName: "paused", ...at });
  } catch (error) {
    const isEmpty =
      error instanceof BaseError &&
      error.walk((cause) => cause instanceof ContractFunctionZeroDataError) !== null;
    if (isEmpty || failedExecution(error) !== null) return false;
    throw error;
  }
}
