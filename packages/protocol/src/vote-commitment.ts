import { encodeAbiParameters, keccak256 } from "viem";
import type { Address, Hex } from "./types.js";

const COMMITMENT_PARAMETERS = [
  { type: "uint256" },
  { type: "address" },
  { type: "address" },
  { type: "uint24" },
  { type: "bytes32" },
] as const;

/**
 * The hash with which EscrowJury seals `votes` (packed outcomes). It binds them to the chain, escrow and voter; the
 * salt hides them.
 */
export function voteCommitment(ballot: {
  chainId: number;
  escrow: Address;
  voter: Address;
  votes: number;
  salt: Hex;
}): Hex {
  const { chainId, escrow, voter, votes, salt } = ballot;
  return keccak256(encodeAbiParameters(COMMITMENT_PARAMETERS, [BigInt(chainId), escrow, voter, votes, salt]));
}
