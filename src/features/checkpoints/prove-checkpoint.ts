/** GET /v1/contracts/{id}/checkpoints/{checkpointId}/proof: proves that the root on chain covers a checkpoint. */

import type { Address, Hex } from "@working-contracts/protocol/types";
import { and, eq } from "drizzle-orm";
import { checkpoint } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { AppError } from "../../errors.js";
import { loadContract } from "../contracts/view.js";
import { proofOf, rootOf } from "./merkle.js";

export interface CheckpointProof {
  checkpointId: string;
  contractId: string;
  /** keccak256 of the checkpoint's canonical JSON. */
  leaf: Hex;
  /** Sibling hashes, from the leaf up; hash each pair in ascending order. */
  proof: Hex[];
  root: Hex;
  leafCount: number;
  /** The root in the escrow's WorkingContractDelivered event; null before delivery. */
  anchoredRoot: Hex | null;
  /** Whether `root` is that root. A Worker that delivered on chain directly can have anchored another one. */
  anchored: boolean;
}

/** The proof against the root over all checkpoints, which a delivery anchors. Throws 404. */
export async function proveCheckpoint(
  { db, checkpointTrees }: Pick<Deps, "db" | "checkpointTrees">,
  { id, checkpointId }: { id: Address; checkpointId: string },
): Promise<CheckpointProof> {
  const { chain } = await loadContract(db, id);
  const [row] = await db
    .select({ leaf: checkpoint.leaf })
    .from(checkpoint)
    .where(and(eq(checkpoint.contractId, id), eq(checkpoint.id, checkpointId)));
  if (row === undefined) {
    throw new AppError("not_found", { message: `The contract has no checkpoint ${checkpointId}.` });
  }
  const tree = await checkpointTrees.of(db, id);
  const root = rootOf(tree);
  const anchoredRoot = chain.checkpointsRoot;
  return {
    checkpointId,
    contractId: id,
    leaf: row.leaf,
    proof: proofOf(tree, row.leaf),
    root,
    leafCount: tree.leafCount,
    anchoredRoot,
    anchored: anchoredRoot === root,
  };
}
