/** The signature (EIP-712) with which an agent allows one action. AgentSignatures.sol checks it. */
import { encodeCall } from "./calls.js";
import { keccak256, stringToHex } from "./hex.js";
import type { Address, Hex } from "./types.js";

/** Seconds for which a signature can be valid at most. */
export const MAX_SIGNATURE_VALIDITY = 86_400;

const ACTION_TYPES = {
  Action: [
    { name: "agent", type: "address" },
    { name: "call", type: "bytes" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint40" },
  ],
} as const;

export interface SignedAction {
  chainId: number;
  /** The escrow, or for an unstake the registry. */
  contract: Address;
  agent: Address;
  /** Calldata of the action. */
  call: Hex;
  /** How often the agent has cancelled its signatures for this contract. */
  nonce: bigint;
  /** Seconds since 1970. */
  deadline: number;
}

export function actionTypedData({ chainId, contract, agent, call, nonce, deadline }: SignedAction) {
  return {
    domain: { name: "Working Contract", version: "1", chainId, verifyingContract: contract },
    types: ACTION_TYPES,
    primaryType: "Action",
    message: { agent, call, nonce, deadline },
  } as const;
}

/** A complaint in the form of a call, so that it is signed like every other action. No contract has this function. */
export function complaintCall(canonicalEvidence: string): Hex {
  return encodeCall("complain(bytes32)", keccak256(stringToHex(canonicalEvidence)));
}
