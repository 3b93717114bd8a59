import type { CheckpointRow } from "./merkle.js";

/** A Checkpoint as the API shows it (spec.md, "Checkpoint"). */
export interface CheckpointView {
  id: string;
  contractId: string;
  fromSequence: number;
  toSequence: number;
  merkleRoot: string;
  lastReceiptHash: string;
  teeMeasurement: string;
  teeSignature: string;
  data: Record<string, unknown>;
  checkpointedAt: string;
  createdAt: string;
}

export function toCheckpoint(row: CheckpointRow): CheckpointView {
  return {
    id: row.id,
    contractId: row.contractId,
    fromSequence: row.fromSequence,
    toSequence: row.toSequence,
    merkleRoot: row.merkleRoot,
    lastReceiptHash: row.lastReceiptHash,
    teeMeasurement: row.teeMeasurement,
    teeSignature: row.teeSignature,
    data: row.data,
    checkpointedAt: row.checkpointedAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
  };
}
