import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { checkpointLeaf, rootOfLeaves, ZERO_HASH } from "@working-contracts/protocol/checkpoints";
import { keccak256, numberToHex } from "viem";
import { describe, expect, it } from "vitest";

describe("rootOfLeaves", () => {
  it.each([1, 2, 3, 4, 5, 7, 8, 9, 31])("equals OpenZeppelin's root over %i leaves", (count) => {
    const leaves = Array.from({ length: count }, (_, i) => keccak256(numberToHex(i, { size: 32 })));
    expect(rootOfLeaves(leaves)).toBe(SimpleMerkleTree.of(leaves).root);
  });

  it("is the zero hash if there are no leaves", () => {
    expect(rootOfLeaves([])).toBe(ZERO_HASH);
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
    checkpointedAt: "2026-01-31T12:00:00.250Z",
  };

  it("does not depend on the order of keys", () => {
    const data = { nested: { a: [1.5, null], b: 1 }, tokens: 12 };
    expect(checkpointLeaf({ ...content, data })).toBe(checkpointLeaf(content));
  });

  it("does not commit to what only the service adds", () => {
    expect(checkpointLeaf({ ...content, id: "1", createdAt: "2026" })).toBe(checkpointLeaf(content));
  });

  it.each(Object.keys(content))("commits to %s", (field) => {
    const changed = { data: { tokens: 13 }, checkpointedAt: "1970-01-01T00:00:00.000Z" }[field] ?? "other";
    expect(checkpointLeaf({ ...content, [field]: changed })).not.toBe(checkpointLeaf(content));
  });
});
