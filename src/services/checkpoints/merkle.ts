/** The Merkle root that a delivery anchors on chain: one leaf per checkpoint, as the API serves it. */
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import canonicalize from "canonicalize";
import { and, asc, eq, gt } from "drizzle-orm";
import { keccak256, stringToHex } from "viem";
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
/** Rows read at once: `data` may be 64 KiB each. */
const PAGE = 200;

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
  return leaves.length === 0 ? ZERO_HASH : (SimpleMerkleTree.of([...leaves]).root as Hex);
}

/** Root over all checkpoints of a Working Contract so far, and the last of them. Reads them page by page. */
export async function summariseCheckpoints(
  db: Executor,
  contractId: string,
): Promise<{ root: Hex; last: CheckpointRow | null }> {
  const leaves: Hex[] = [];
  let last: CheckpointRow | null = null;
  for (;;) {
    const after: number = last?.position ?? -1;
    const page: CheckpointRow[] = await db
      .select()
      .from(checkpoint)
      .where(and(eq(checkpoint.contractId, contractId), gt(checkpoint.position, after)))
      .orderBy(asc(checkpoint.position))
      .limit(PAGE);
    for (const row of page) leaves.push(checkpointLeaf(row));
    last = page.at(-1) ?? last;
    if (page.length < PAGE) return { root: merkleRootOf(leaves), last };
  }
}
