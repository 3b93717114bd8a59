/** The Merkle root over a contract's checkpoints, which a delivery anchors on chain. */
import canonicalize from "canonicalize";
import { concatHex, keccak256, stringToHex } from "./hex.js";
import type { Hex } from "./types.js";

export const ZERO_HASH: Hex = `0x${"0".repeat(64)}`;

/** keccak256 of a Checkpoint's canonical JSON (RFC 8785), as the API serves it, without `id` and `createdAt`. */
export function checkpointLeaf({ id: _, createdAt: __, ...content }: Record<string, unknown>): Hex {
  return keccak256(stringToHex(canonicalize(content) ?? ""));
}

/** Laid out as OpenZeppelin's SimpleMerkleTree: the root first, children of i at 2i+1 and 2i+2, sorted leaves backwards. */
export function rootOfLeaves(leaves: readonly Hex[]): Hex {
  const nodes = [...leaves.slice(1), ...[...leaves].sort().reverse()];
  for (let i = leaves.length - 2; i >= 0; i--) {
    const pair = [nodes[2 * i + 1], nodes[2 * i + 2]] as Hex[];
    nodes[i] = keccak256(concatHex(pair.sort()));
  }
  return nodes[0] ?? ZERO_HASH;
}
