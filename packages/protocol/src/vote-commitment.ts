import { encodeAbiParameters, keccak256 } from "viem";
import type { Address, Hex } from "./types.js";

const COMMITMENT_PARAMETERS = [
  { type: "uint256" },
  { type: "address" },
  { type: "address" },
  { type: "uint24" },
  { type: "bytes32" },
] as const;

/** The hash by which EscrowJury seals `votes` (packed outcomes): bound to chain, escrow and voter, hidden by `salt`. */
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
