import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts"], testTimeout: 20_000 } },
      withStack("integration"),
      withStack("e2e"),
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
      fileParallelism: false,
      testTimeout: 120_000,
      hookTimeout: 300_000,
      teardownTimeout: 60_000,
    },
  };
}
