/**
 * The mechanisms switched off, one at a time: each must make its tests fail, or the tests prove nothing.
 * `npm run test:faults -- --mutants [name…]` applies each to a copy of the sources and runs the named tests there.
 */

/**
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} file
 * @property {[from: string, to: string][]} edits every `from` stands in the file exactly once
 * @property {string} project
 * @property {string} tests file of the tests
 * @property {string} only pattern of the tests that must fail
 */

/** @type {Mutant[]} */
export const MUTANTS = [
  {
    name: "published-forgotten",
    file: "src/services/payments/perform-payment.ts",
    edits: [["isNotNull(operation.publishedAt)", "isNotNull(operation.transactionHash)"]],
    project: "e2e",
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "published once",
  },
  {
    name: "stale-head",
    file: "src/relayer/send.ts",
    // Either alone would do: a fresh head, and a look at how new it has to be.
    edits: [
      ["current = await readHead(publicClient);", "current = head;"],
      ["if (current.number < newestBlock) {", "if (current.number < 0n) {"],
    ],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "no older state",
  },
  {
    name: "node-behind",
    file: "src/relayer/send.ts",
    edits: [["if (current.number < newestBlock) {", "if (current.number < 0n) {"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "node is behind",
  },
  {
    name: "no-caretaker",
    file: "src/relayer/caretaker.ts",
    edits: [["await followBatches({", "if (signer.length < 0) await followBatches({"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "removed signer has signed",
  },
  {
    name: "absence-is-proof",
    file: "src/relayer/follow.ts",
    edits: [["if (use === null || use.isOurs ||", "if (use === null ||"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "no missing receipt",
  },
  {
    name: "given-up-forgotten",
    file: "src/relayer/given-up.ts",
    edits: [['if (receipt?.status !== "success" ||', "if (receipt !== null ||"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "given up was applied",
  },
  {
    name: "broadcast-before-commit",
    file: "src/relayer/send.ts",
    edits: [
      [
        '  await crashPoint("after_signing");',
        '  await broadcast(context, attempt);\n  await crashPoint("after_signing");',
      ],
    ],
    project: "faults",
    tests: "test/faults/crash.test.ts",
    only: "before the batch is stored",
  },
];
