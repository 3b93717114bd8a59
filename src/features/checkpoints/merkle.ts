/** The Merkle tree that a delivery anchors on chain: one leaf per checkpoint, as the API serves it. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { ZERO_HASH } from "@working-contracts/protocol/checkpoints";
import type { Hex } from "@working-contracts/protocol/types";
import { bytesToHex, hexToBytes, keccak256 } from "viem";
import type { checkpoint } from "../../db/schema.js";

export type CheckpointRow = typeof checkpoint.$inferSelect;

/** The fields of a Checkpoint that a leaf commits to: all except those that the service adds. */
export type CheckpointContent = Pick<
  CheckpointRow,
  | "contractId"
  | "fromSequence"
  | "toSequence"
  | "merkleRoot"
  | "lastReceiptHash"
  | "teeMeasurement"
  | "teeSignature"
  | "data"
  | "checkpointedAt"
>;

/**
 * A complete binary tree as OpenZeppelin's SimpleMerkleTree lays it out: the root first, children of i at 2i+1 and
 * 2i+2, leaves last and backwards.
 */
export interface CheckpointTree {
  leafCount: number;
  /** All nodes, 32 bytes each. */
  nodes: Buffer;
}

const NODE_BYTES = 32;
/** At about 10 microseconds each, a tree delays other requests by a few milliseconds at most. */
const HASHES_PER_TURN = 250;

/** Builds the tree over leaves in ascending order, yielding to the event loop in between. */
export async function buildTree(sorted: readonly Uint8Array[]): Promise<CheckpointTree> {
  const leafCount = sorted.length;
  const nodeCount = Math.max(0, 2 * leafCount - 1);
  const tree = { leafCount, nodes: Buffer.alloc(nodeCount * NODE_BYTES) };
  for (const [i, leaf] of sorted.entries()) tree.nodes.set(leaf, (nodeCount - 1 - i) * NODE_BYTES);
  for (let i = nodeCount - leafCount - 1; i >= 0; i--) {
    tree.nodes.set(hashPair(nodeAt(tree, 2 * i + 1), nodeAt(tree, 2 * i + 2)), i * NODE_BYTES);
    if (i % HASHES_PER_TURN === 0) await nextTurn();
  }
  return tree;
}

/** The root; the zero hash if there are no leaves. */
export function rootOf(tree: CheckpointTree): Hex {
  return tree.leafCount === 0 ? ZERO_HASH : bytesToHex(nodeAt(tree, 0));
}

/** The sibling hashes from `leaf` up. Throws if the tree does not contain the leaf. */
export function proofOf(tree: CheckpointTree, leaf: Hex): Hex[] {
  const proof: Hex[] = [];
  for (let index = indexOf(tree, leaf); index > 0; index = (index - 1) >> 1) {
    proof.push(bytesToHex(nodeAt(tree, index % 2 === 0 ? index - 1 : index + 1)));
  }
  return proof;
}

/** Leaves are stored in reverse order, so they descend with the index. */
function indexOf(tree: CheckpointTree, leaf: Hex): number {
  const wanted = hexToBytes(leaf);
  const end = 2 * tree.leafCount - 1;
  let [low, high] = [tree.leafCount - 1, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(nodeAt(tree, middle), wanted) > 0) low = middle + 1;
    else high = middle;
  }
  if (low < end && Buffer.compare(nodeAt(tree, low), wanted) === 0) return low;
  throw new RangeError(`${leaf} is no leaf of this tree`);
}

function nodeAt({ nodes }: CheckpointTree, index: number): Buffer {
  return nodes.subarray(index * NODE_BYTES, (index + 1) * NODE_BYTES);
}

function hashPair(a: Buffer, b: Buffer): Uint8Array {
  return keccak256(Buffer.concat(Buffer.compare(a, b) < 0 ? [a, b] : [b, a]), "bytes");
}
