import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { keccak256, numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { checkpointLeaf, merkleProofOf, merkleRootOf } from "../../../../src/services/checkpoints/merkle.js";

const leavesOf = (count: number) =>
  Array.from({ length: count }, (_, i) => keccak256(numberToHex(i, { size: 32 })));

describe("merkleRootOf", () => {
  it("is the zero hash without checkpoints", () => {
    expect(merkleRootOf([])).toBe(`0x${"0".repeat(64)}`);
  });

  it.each([1, 2, 3, 4, 5, 7, 8, 9, 31, 100])("equals OpenZeppelin's root over %i leaves", (count) => {
    const leaves = leavesOf(count);
    expect(merkleRootOf(leaves)).toBe(SimpleMerkleTree.of(leaves).root);
  });
});

describe("merkleProofOf", () => {
  it("gives every leaf the proof that OpenZeppelin's verifier accepts", () => {
    for (const count of [1, 2, 3, 6, 13]) {
      const leaves = leavesOf(count);
      for (const leaf of leaves) {
        const { root, proof } = merkleProofOf(leaves, leaf);
        expect(root).toBe(merkleRootOf(leaves));
        expect(SimpleMerkleTree.verify(root, leaf, proof)).toBe(true);
        expect(SimpleMerkleTree.verify(root, keccak256(leaf), proof)).toBe(false);
      }
    }
  });

  it("refuses to prove a hash that is no leaf, even an inner node", () => {
    const leaves = leavesOf(4);
    expect(() => merkleProofOf(leaves, keccak256("0x"))).toThrow(RangeError);
    expect(() => merkleProofOf(leaves, merkleRootOf(leaves))).toThrow(RangeError);
  });
});

describe("checkpointLeaf", () => {
  const content = {
    contractId: "0x52908400098527886e0f7030069857d2e4169ee7",
    fromSequence: 1,
    toSequence: 10,
    merkleRoot: "root",
    lastReceiptHash: "hash",
    teeMeasurement: "measurement",
    teeSignature: "signature",
    data: { tokens: 12, nested: { b: 1, a: [1.5, null] } },
    checkpointedAt: new Date("2026-01-31T12:00:00.250Z"),
  };

  it("does not depend on the order of keys", () => {
    const data = { nested: { a: [1.5, null], b: 1 }, tokens: 12 };
    expect(checkpointLeaf({ ...content, data })).toBe(checkpointLeaf(content));
  });

  it.each(Object.keys(content))("commits to %s", (field) => {
    const changed = { data: { tokens: 13 }, checkpointedAt: new Date(0) }[field] ?? "other";
    expect(checkpointLeaf({ ...content, [field]: changed })).not.toBe(checkpointLeaf(content));
  });
});
