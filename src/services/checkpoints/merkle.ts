/** The Merkle tree that a delivery anchors on chain: one leaf per checkpoint, as the API serves it. */
import canonicalize from "canonicalize";
import { asc, desc, eq } from "drizzle-orm";
import { bytesToHex, hexToBytes, keccak256, stringToHex } from "viem";
import type { Executor } from "../../db/client.js";
import { checkpoint } from "../../db/schema.js";
import type { Hex } from "../../protocol/types.js";

export type CheckpointRow = typeof checkpoint.$inferSelect;

/** What a leaf commits to; the fields of the Checkpoint resource without the ones that the service adds. */
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

const ZERO_HASH: Hex = `0x${"0".repeat(64)}`;

/** keccak256 of the checkpoint's canonical JSON (RFC 8785), times in ISO 8601. */
export function checkpointLeaf(content: CheckpointContent): Hex {
  const text = canonicalize({
    contractId: content.contractId,
    fromSequence: content.fromSequence,
    toSequence: content.toSequence,
    merkleRoot: content.merkleRoot,
    lastReceiptHash: content.lastReceiptHash,
    teeMeasurement: content.teeMeasurement,
    teeSignature: content.teeSignature,
    data: content.data,
    checkpointedAt: content.checkpointedAt.toISOString(),
  });
  return keccak256(stringToHex(text ?? ""));
}

/** Root of OpenZeppelin's SimpleMerkleTree (sorted leaves, sorted pairs); the zero hash without leaves. */
export function merkleRootOf(leaves: readonly Hex[]): Hex {
  const root = treeOf(leaves)[0];
  return root === undefined ? ZERO_HASH : bytesToHex(root);
}

/** The sibling hashes from `leaf` up, and the root they lead to. Throws where the leaf is none of `leaves`. */
export function merkleProofOf(leaves: readonly Hex[], leaf: Hex): { root: Hex; proof: Hex[] } {
  const tree = treeOf(leaves);
  const wanted = hexToBytes(leaf);
  let index = tree.findLastIndex((node) => Buffer.compare(node, wanted) === 0);
  if (index < leaves.length - 1) throw new RangeError(`${leaf} is no leaf of this tree`);
  const proof: Hex[] = [];
  for (; index > 0; index = (index - 1) >> 1) {
    proof.push(bytesToHex(tree[index % 2 === 0 ? index - 1 : index + 1] as Uint8Array));
  }
  return { root: bytesToHex(tree[0] as Uint8Array), proof };
}

/**
 * The complete binary tree as OpenZeppelin lays it out: the root first, children of i at 2i+1 and 2i+2, leaves last
 * and backwards. Built here because their builder takes several times as long, and proofs are public.
 */
function treeOf(leaves: readonly Hex[]): Uint8Array[] {
  const sorted = leaves.map((leaf) => hexToBytes(leaf)).sort(Buffer.compare);
  const tree: Uint8Array[] = new Array(Math.max(0, 2 * sorted.length - 1));
  for (const [i, leaf] of sorted.entries()) tree[tree.length - 1 - i] = leaf;
  for (let i = tree.length - sorted.length - 1; i >= 0; i--) {
    const pair = [tree[2 * i + 1] as Uint8Array, tree[2 * i + 2] as Uint8Array].sort(Buffer.compare);
    tree[i] = keccak256(Buffer.concat(pair), "bytes");
  }
  return tree;
}

/** Leaves of all checkpoints of a Working Contract so far, oldest first. */
export async function readLeaves(db: Executor, contractId: string): Promise<Hex[]> {
  const rows = await db
    .select({ leaf: checkpoint.leaf })
    .from(checkpoint)
    .where(eq(checkpoint.contractId, contractId))
    .orderBy(asc(checkpoint.position));
  return rows.map(({ leaf }) => leaf);
}

/** The newest checkpoint of a Working Contract. */
export async function readLastCheckpoint(db: Executor, contractId: string): Promise<CheckpointRow | null> {
  const [last] = await db
    .select()
    .from(checkpoint)
    .where(eq(checkpoint.contractId, contractId))
    .orderBy(desc(checkpoint.position))
    .limit(1);
  return last ?? null;
}

/** Root over all checkpoints of a Working Contract so far, and the last of them. Call it under `lockCheckpoints`. */
export async function summariseCheckpoints(
  db: Executor,
  contractId: string,
): Promise<{ root: Hex; last: CheckpointRow | null }> {
  const last = await readLastCheckpoint(db, contractId);
  return { root: last === null ? ZERO_HASH : merkleRootOf(await readLeaves(db, contractId)), last };
}
