import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import { type Hex, hexToBytes, keccak256, numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { buildTree, proofOf, rootOf } from "../../../../src/features/checkpoints/checkpoint-trees.js";

const leavesOf = (count: number) =>
  Array.from({ length: count }, (_, i) => keccak256(numberToHex(i, { size: 32 })));

const treeOf = (leaves: Hex[]) => buildTree(leaves.map((leaf) => hexToBytes(leaf)).sort(Buffer.compare));

it("the root of no checkpoints is the zero hash", async () => {
  expect(rootOf(await treeOf([]))).toBe(`0x${"0".repeat(64)}`);
});

describe("proofOf", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31])(
    "proves each of %i leaves, by OpenZeppelin's root",
    async (count) => {
      const leaves = leavesOf(count);
      const tree = await treeOf(leaves);
      expect(rootOf(tree)).toBe(SimpleMerkleTree.of(leaves).root);
      for (const leaf of leaves) {
        const proof = proofOf(tree, leaf);
        expect(SimpleMerkleTree.verify(rootOf(tree), leaf, proof)).toBe(true);
        expect(SimpleMerkleTree.verify(rootOf(tree), keccak256(leaf), proof)).toBe(false);
      }
    },
  );

  it("refuses to prove a hash that is not a leaf, even an inner node", async () => {
    const tree = await treeOf(leavesOf(4));
    for (const other of [
      keccak256("0x"),
      rootOf(tree),
      `0x${"00".repeat(32)}`,
      `0x${"ff".repeat(32)}`,
    ] as const) {
      expect(() => proofOf(tree, other)).toThrow(RangeError);
    }
    expect(() => proofOf({ leafCount: 0, nodes: Buffer.alloc(0) }, keccak256("0x"))).toThrow(RangeError);
  });
});

describe("buildTree", () => {
  it("lets other work run in between, at least once in 250 hashes", async () => {
    let turns = 0;
    let building = true;
    const otherWork = (): void => {
      turns++;
      if (building) setImmediate(otherWork);
    };
    setImmediate(otherWork);
    await treeOf(leavesOf(5000));
    building = false;
    expect(turns).toBeGreaterThanOrEqual(20);
  });
});
