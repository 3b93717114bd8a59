import { statSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const SETUP_FILES = ["test/support/setup.ts"];
/** Characters of a value in a failure's message. The end of a run repeats the message without the difference below it. */
const chaiConfig = { truncateThreshold: 1000 };

/** Moves the chain's time, on which the figures of the other pages depend. */
const isLast = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith("test/browser/wallet.test.ts");
/** Reads all tables after each of its requests: later they would hold what other files wrote. */
const isFirst = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith("/edge.test.ts");

class Suites extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = (file: TestSpecification): number => Number(isLast(file)) - Number(isFirst(file));
    return sorted.toSorted((a, b) => place(a) - place(b));
  }

  /** Parts of about the same size. All processes have to agree on them, so equal sizes are ordered by path. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard ?? { index: 1, count: 1 };
    const sizeOf = ({ moduleId }: TestSpecification): number => statSync(moduleId).size;
    const byPath = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    const largestFirst = byPath.toSorted((a, b) => sizeOf(b) - sizeOf(a));
    const parts = Array.from({ length: count }, () => ({ size: 0, files: [] as TestSpecification[] }));
    for (const file of largestFirst) {
      const smallest = parts.reduce((least, part) => (part.size < least.size ? part : least));
      smallest.size += sizeOf(file);
      smallest.files.push(file);
    }
    return parts[index - 1]?.files ?? [];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: Suites },
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          isolate: false,
          testTimeout: 60_000,
          chaiConfig,
        },
      },
      { test: { ...withStack("integration").test, globalSetup: "test/support/database-setup.ts" } },
      // The tests of a file that run concurrently mostly wait. Vitest's default is 5.
      { test: { ...withStack("e2e").test, maxConcurrency: 10 } },
      withStack("nightly"),
      faults(),
      cluster(),
      { test: { ...withStack("browser").test, globalSetup: "test/browser/support/global-setup.ts" } },
      {
        test: {
          ...withStack("conformance").test,
          globalSetup: "test/conformance/support/global-setup.ts",
          setupFiles: [...SETUP_FILES, "test/conformance/support/patient-fetch.ts"],
          // The tests of a file run concurrently; each mostly waits for the chain.
          maxConcurrency: 24,
        },
      },
    ],
  },
});

/** One stack per project. Its files share the chain and move its time, so they run one after another. */
function withStack(name: string) {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: "test/support/global-setup.ts",
      setupFiles: SETUP_FILES,
      fileParallelism: false,
      // One process for all files, so that shared modules, viem above all, load once.
      isolate: false,
      testTimeout: 120_000,
      chaiConfig,
      // Vitest's default is one second.
      expect: { poll: { timeout: 60_000 } },
      hookTimeout: 300_000,
      teardownTimeout: 60_000,
    },
  };
}

/** Each file starts its own processes and breaks them; mostly it waits for them. */
function faults() {
  return {
    test: {
      name: "faults",
      include: ["test/faults/**/*.test.ts"],
      // Each file loads a core: more files in parallel take longer than in sequence.
      maxWorkers: 2,
      chaiConfig,
      testTimeout: 600_000,
      hookTimeout: 300_000,
      teardownTimeout: 60_000,
    },
  };
}

/** Some of the end-to-end files, on several API and relayer processes. */
function cluster() {
  const files = [
    ...["contract-payments", "disputes", "votes", "stakes", "direct-transfers", "contract-list"],
    ...["checkpoints", "complaints", "events", "usage-ticket", "workload"],
  ];
  return {
    test: {
      ...withStack("cluster").test,
      include: files.map((name) => `test/e2e/${name}.test.ts`),
      globalSetup: "test/support/cluster-setup.ts",
      // Each process counts an address's streams and downloads separately.
      testNamePattern: /^(?!.*(if an address has too many|the whole lists of one client))/,
    },
  };
}
