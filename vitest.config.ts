import { defineConfig } from "vitest/config";

const SETUP_FILES = ["test/support/wall-clock.ts", "test/support/checked-fetch.ts"];

export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], isolate: false, testTimeout: 20_000 } },
      withStack("integration"),
      withStack("e2e"),
      faults(),
      cluster(),
      { test: { ...withStack("browser").test, globalSetup: "test/browser/support/global-setup.ts" } },
      {
        test: {
          ...withStack("conformance").test,
          globalSetup: "test/conformance/support/global-setup.ts",
          setupFiles: [...SETUP_FILES, "test/conformance/support/patient-fetch.ts"],
          // The sentences of a file run at once; each waits for the chain most of its time.
          maxConcurrency: 24,
        },
      },
    ],
  },
});

/** One stack for the project; the files share its chain and move its time, so they run one after another. */
function withStack(name: string) {
  return {
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: "test/support/global-setup.ts",
      setupFiles: SETUP_FILES,
      fileParallelism: false,
      // One process for all files: what each would load anew, viem above all, is loaded once.
      isolate: false,
      testTimeout: 120_000,
      hookTimeout: 300_000,
      teardownTimeout: 60_000,
    },
  };
}

/** Each file starts processes of its own and breaks them; most of the time it waits for them. */
function faults() {
  return {
    test: {
      name: "faults",
      include: ["test/faults/**/*.test.ts"],
      // Each file loads a core: more of them at once take longer than one after another.
      maxWorkers: 2,
      testTimeout: 600_000,
      hookTimeout: 300_000,
      teardownTimeout: 60_000,
    },
  };
}

/** The end-to-end tests again, on several processes of each kind; those with a stack of their own stay out. */
function cluster() {
  const files = [
    ...["contract-lifecycle", "contract-payments", "disputes", "votes", "stakes", "outside-money"],
    ...["contract-list", "checkpoints", "complaints", "events", "profiles", "usage-ticket", "workload"],
  ];
  return {
    test: {
      ...withStack("cluster").test,
      include: files.map((name) => `test/e2e/${name}.test.ts`),
      globalSetup: "test/support/cluster-setup.ts",
      // An address's streams are counted by each process for itself.
      testNamePattern: /^(?!.*if an address has too many)/,
    },
  };
}
